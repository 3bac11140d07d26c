#!/usr/bin/env bash
# Prints the folder of a libclang that the bindgen of rdma-sys 0.3.0 understands, or nothing when the one that is found anyway is fine.
# That bindgen (0.59) fails with libclang 16 and newer, and takes the newest it finds. Debian 12 has libclang 14 and 15 beside newer ones; Debian
# 13 has none that old, so the wheel `libclang` of PyPI (14.0.6, the library alone) is unpacked into the user's cache there.
set -euo pipefail
[ -n "${LIBCLANG_PATH:-}" ] && exit 0
versions() { ls -d /usr/lib/llvm-*/lib/ 2>/dev/null | while read -r d; do compgen -G "${d}libclang*.so*" >/dev/null && echo "$d"; done | sed -E 's#.*/llvm-([0-9]+)/.*#\1#' | sort -n; }
newest=$(versions | tail -1)
[ -n "$newest" ] && [ "$newest" -lt 16 ] && exit 0
old=$(versions | awk '$1 < 16' | tail -1)
[ -n "$old" ] && { echo "/usr/lib/llvm-$old/lib"; exit 0; }
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  for version in 15 14; do
    if apt-cache show "libclang1-$version" >/dev/null 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "libclang1-$version" >/dev/null; then
      echo "/usr/lib/llvm-$version/lib"; exit 0
    fi
  done
fi
cache="${XDG_CACHE_HOME:-$HOME/.cache}/npushmem/libclang-14.0.6"
if [ ! -e "$cache/clang/native/libclang.so" ]; then
  mkdir -p "$cache"
  python3 -m pip download -q --no-deps --only-binary=:all: -d "$cache" libclang==14.0.6 >&2 ||
    { echo "rdma-sys 0.3.0 needs a libclang before 16, and neither apt nor PyPI (libclang==14.0.6) gave one: set LIBCLANG_PATH" >&2; exit 2; }
  python3 -m zipfile -e "$cache"/libclang-14.0.6-*.whl "$cache"
fi
echo "$cache/clang/native"
