#!/usr/bin/env bash
# Makes a fresh Debian or Ubuntu machine ready to build npushmem: clang (AscendC kernels for the emulated NPU), libclang (bindgen), a C linker
# and Rust. What is missing is installed through apt when this user may; otherwise the packages are named and nothing is changed.
# Called by `make demo` and `make test`. Prints nothing when all is there.
set -euo pipefail

MIN_RUST_MINOR=88 # rust-version of Cargo.toml

rust_minor() { # minor version of the cargo named $1, or nothing
  "$1" --version 2>/dev/null | sed -nE 's/^cargo 1\.([0-9]+)\..*/\1/p'
}
rust_ok() { local m; m=$(rust_minor "${1:-cargo}"); [ -n "$m" ] && [ "$m" -ge "$MIN_RUST_MINOR" ]; }
# A cargo that rustup put into the home directory counts also where the shell's PATH does not have it yet.
if ! rust_ok && [ -x "$HOME/.cargo/bin/cargo" ] && rust_ok "$HOME/.cargo/bin/cargo"; then
  PATH="$HOME/.cargo/bin:$PATH"
fi
clang_ok() { [ -n "${NPUSHMEM_CLANG:-}" ] || command -v clang >/dev/null || compgen -c clang- | grep -qE '^clang-[0-9]+$'; }
libclang_ok() { [ -n "${LIBCLANG_PATH:-}" ] || compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null || compgen -G '/usr/lib/*/libclang*.so*' >/dev/null || compgen -G '/usr/lib64/libclang*.so*' >/dev/null; }

need=()
command -v cc >/dev/null || need+=(gcc libc6-dev)
clang_ok || need+=(clang)
libclang_ok || need+=(libclang-dev)
command -v python3 >/dev/null || need+=(python3)

want_rust=
rust_ok || want_rust=1
[ ${#need[@]} -eq 0 ] && [ -z "$want_rust" ] && exit 0

sudo=
if [ "$(id -u)" != 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo=sudo; else sudo=none; fi
fi
if [ "$sudo" = none ] || ! command -v apt-get >/dev/null; then
  echo "npushmem: missing packages: ${need[*]:-} ${want_rust:+and Rust 1.$MIN_RUST_MINOR or newer (rustc, cargo)}" >&2
  echo "npushmem: install them as root, e.g.: apt-get install -y ${need[*]:-} ${want_rust:+rustc-web cargo-web rustfmt-web rust-web-clippy   (or: apt-get install rustup && rustup default stable)}" >&2
  exit 2
fi

echo "npushmem: installing ${need[*]:-} ${want_rust:+Rust}"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
[ ${#need[@]} -eq 0 ] || $sudo apt-get install -y -qq --no-install-recommends "${need[@]}" >/dev/null
if [ -n "$want_rust" ]; then
  if apt-cache show cargo-web >/dev/null 2>&1; then
    $sudo apt-get install -y -qq --no-install-recommends rustc-web cargo-web rustfmt-web rust-web-clippy >/dev/null
  elif apt-cache show rustup >/dev/null 2>&1; then
    $sudo apt-get install -y -qq --no-install-recommends rustup >/dev/null && rustup default stable
  fi
  hash -r
  rust_ok || { echo "npushmem: no Rust 1.$MIN_RUST_MINOR or newer could be had: install rustup (https://rustup.rs) or the packages rustc-web cargo-web" >&2; exit 2; }
fi
