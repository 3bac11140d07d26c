#!/usr/bin/env bash
# Installs programs, library, headers and the pkg-config file below PREFIX (default /usr/local), or below DESTDIR/PREFIX for packagers.
# Called by `make install`, which has built the release profile. Usage: install.sh FOLDER_OF_BUILT_FILES
set -euo pipefail
cd "$(dirname "$0")/.."
built=${1:?usage: install.sh FOLDER_OF_BUILT_FILES}
prefix=${PREFIX:-/usr/local}
case $prefix in
  /*) ;;
  *) echo "npushmem: PREFIX=$prefix: give an absolute path" >&2; exit 2 ;;
esac
root=${DESTDIR:-}$prefix
version=$(sed -nE 's/^version = "([0-9.]+)"/\1/p' Cargo.toml | head -1)

if ! mkdir -p "$root" 2>/dev/null || [ ! -w "$root" ]; then
  echo "npushmem: $root cannot be written; give another folder (make install PREFIX=\$HOME/.local) or more rights" >&2
  exit 1
fi
install -d "$root"/bin "$root"/lib/pkgconfig "$root"/include/npushmem "$root"/include/mpp
install -m 755 "$built"/{npushmem,oshcc,oshcxx,oshrun} "$root"/bin
install -m 755 "$built"/libnpushmem.so "$root"/lib
# Names by which existing build scripts link OpenSHMEM libraries: all of it is in the one library.
ln -sf libnpushmem.so "$root"/lib/libsma.so
ln -sf libnpushmem.so "$root"/lib/libpmi_simple.so
install -m 644 capi/include/*.h "$root"/include
install -m 644 capi/include/mpp/*.h "$root"/include/mpp
install -m 644 capi/include/npushmem/*.h "$root"/include/npushmem
cat > "$root"/lib/pkgconfig/npushmem.pc <<EOF
prefix=$prefix
includedir=\${prefix}/include
libdir=\${prefix}/lib

Name: npushmem
Description: OpenSHMEM 1.6 for C and C++
Version: $version
Cflags: -I\${includedir} -DNPUSHMEM_OSHCC
Libs: -L\${libdir} -Wl,-rpath,\${libdir} -lnpushmem -lm
EOF
echo "npushmem $version is installed in $root"
