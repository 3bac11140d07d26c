#!/usr/bin/env bash
# A program outside this repository over the packages as crates.io would hand them out: packs them, unpacks them into a temporary folder, builds a
# copy of examples/template there against them, and runs it on 2 PEs. So a file that a package lacks is found before it is published.
# Called by `make test-package`, which has built the launcher. What cargo makes is below target/package-test.
# Usage: test-package.sh FOLDER_OF_BUILT_FILES
set -euo pipefail
cd "$(dirname "$0")/.."
launcher=$(realpath "${1:?usage: test-package.sh FOLDER_OF_BUILT_FILES}")/npushmem
packages=(npushmem npushmem-build npushmem-ffi npushmem-roce npusim)
target=${CARGO_TARGET_DIR:-target}/package-test
mkdir -p "$target"
target=$(realpath "$target")
rm -rf "$target/package"

echo "== package"
CARGO_TARGET_DIR=$target cargo package --quiet --locked --allow-dirty --no-verify "${packages[@]/#/-p}"

# Not below target: there cargo would take the packages for strays of this workspace.
outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
mkdir "$outside/program"
git ls-files -z examples/template | tar --null -T - -c | tar -x -C "$outside/program" --strip-components=2
cp Cargo.lock "$outside/program" # the versions that everything else was tested with
manifest=$outside/program/Cargo.toml
sed -i '/^\[patch\.crates-io\]/,/^$/d' "$manifest"
echo '[patch.crates-io]' >> "$manifest"
for package in "${packages[@]}"; do
  crate=$(echo "$target/package/$package"-[0-9]*.crate)
  tar -xzf "$crate" -C "$outside"
  echo "$package = { path = \"../$(basename "$crate" .crate)\" }" >> "$manifest"
done

echo "== build outside the repository"
cd "$outside/program"
CARGO_TARGET_DIR=$target cargo build --quiet

echo "== run on 2 PEs"
for engine in mapped roce; do
  NPUSHMEM_ENGINE=$engine "$launcher" run -n 2 --timeout 60 -- "$target/debug/my-kernels"
done
