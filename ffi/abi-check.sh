#!/usr/bin/env bash
# Compares ffi/include/acl.h with a real set of ACL headers (examples/abi_check.rs says how). The set is, in this order:
#   ACL_INCLUDE       a folder that holds acl/acl_rt.h
#   ASCEND_HOME_PATH  an installed CANN toolkit
#   the PyPI wheel torch-npu, which carries the headers; it is downloaded once, pinned by its hash, and only its
#   headers are unpacked, into target/abi-check/
# Without a toolkit and without network the check is skipped, loudly, with exit code 0. Exit code 1: a difference.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly VERSION=2.14.0 # ACL 1.17
readonly SHA256=7736f7d82cf9f16c7dfc4537f7e7c638153da760273a193455e70857f912189e
readonly INSIDE=torch_npu/include/third_party/acl/inc # where the wheel has acl/acl_rt.h

say() { echo "abi-check: $*"; }

skip() {
    say "========================================================================"
    say "SKIPPED (skipped, not passed): $*"
    say "set ACL_INCLUDE to a folder that holds acl/acl_rt.h to run it"
    say "========================================================================"
    exit 0
}

# The wheel's headers, in the folder $1.
fetch() {
    local into=$1 log wheel
    command -v python3 >/dev/null || skip "python3 is not installed, and ASCEND_HOME_PATH has no headers"
    python3 -m pip --version >/dev/null 2>&1 || skip "python3 has no pip, and ASCEND_HOME_PATH has no headers"
    mkdir -p "$into"
    log=$into/pip.log
    printf 'torch-npu==%s --hash=sha256:%s\n' "$VERSION" "$SHA256" >"$into/requirements.txt"
    say "downloading torch-npu $VERSION (43 MB) for its headers"
    if ! python3 -m pip download --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.11 \
        --platform manylinux_2_28_x86_64 --require-hashes --retries 1 --timeout 20 \
        --dest "$into" --requirement "$into/requirements.txt" >"$log" 2>&1; then
        if grep -q 'DO NOT MATCH THE HASHES' "$log"; then
            cat "$log" >&2
            say "the wheel is not the pinned one; it is not used" >&2
            exit 1
        fi
        tail -n 3 "$log" >&2
        skip "torch-npu $VERSION cannot be downloaded"
    fi
    wheel=$(echo "$into"/*.whl)
    python3 - "$wheel" "$into" "$INSIDE/acl/" <<'PYTHON'
import sys
import zipfile

wheel, into, inside = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    archive.extractall(into, [name for name in archive.namelist() if name.startswith(inside)])
PYTHON
    rm -f "$wheel"
    touch "$into/complete"
}

if [[ -n ${ACL_INCLUDE:-} ]]; then
    include=$ACL_INCLUDE
    if [[ ! -f $include/acl/acl_rt.h ]]; then
        say "ACL_INCLUDE=$include has no acl/acl_rt.h" >&2
        exit 2
    fi
else
    include=
    if [[ -n ${ASCEND_HOME_PATH:-} ]]; then
        for folder in "$ASCEND_HOME_PATH/include" "$ASCEND_HOME_PATH/$(uname -m)-linux/include"; do
            if [[ -f $folder/acl/acl_rt.h ]]; then
                include=$folder
                break
            fi
        done
        [[ -n $include ]] || say "ASCEND_HOME_PATH=$ASCEND_HOME_PATH has no include/acl/acl_rt.h; taking torch-npu's"
    fi
    if [[ -z $include ]]; then
        folder=${CARGO_TARGET_DIR:-target}/abi-check/torch-npu-$VERSION
        [[ -f $folder/complete ]] || fetch "$folder"
        include=$folder/$INSIDE
    fi
fi

say "headers: $include"
# Dependencies as build scripts have them (not optimised): bindgen is then built once for both.
cargo run --quiet --package npushmem-ffi --features abi-check --example abi_check \
    --config 'profile.dev.package."*".opt-level=0' -- ffi/include/acl.h "$include"
