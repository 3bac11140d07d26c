#!/usr/bin/env bash
# Builds shmem4py, the Python package of OpenSHMEM, against our oshcc and runs its own tests on 1, 2 and 4 PEs.
# Called by `make test-python`, which has built oshcc, oshrun and the library. Everything it makes is below target/python.
# Needs python3 with venv and its headers, and network for pip the first time; without them it says so and is skipped.
# Usage: test-python.sh FOLDER_OF_BUILT_FILES
set -euo pipefail
cd "$(dirname "$0")/.."
built=$(realpath "${1:?usage: test-python.sh FOLDER_OF_BUILT_FILES}")
package=shmem4py==1.0.0
sha256=41db82b216b46b7eaa737daf17e6ad74c4ba07332779df312c06250bad847f81
work=${CARGO_TARGET_DIR:-target}/python
mkdir -p "$work"
work=$(realpath "$work")
log=$work/log.txt

skip() {
  echo "npushmem: *** SKIPPED: the tests of shmem4py: $1" >&2
  [ -s "$log" ] && tail -n 3 "$log" | sed 's/^/npushmem:     /' >&2
  exit 0
}

: > "$log"
python=${PYTHON:-python3}
command -v "$python" >/dev/null || skip "no $python"
"$python" -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
  skip "$python has no headers (Debian: apt-get install python3-dev python3-venv)"
venv=$work/venv
if [ ! -x "$venv/bin/pip" ]; then
  rm -rf "$venv"
  "$python" -m venv "$venv" >> "$log" 2>&1 || skip "$python has no venv (Debian: apt-get install python3-venv python3-dev)"
fi
# numpy 2 took names away that shmem4py 1.0.0 uses.
"$venv/bin/pip" install -q 'numpy<2' cffi setuptools wheel >> "$log" 2>&1 || skip "pip cannot install numpy, cffi and setuptools"
if [ ! -d "$work/shmem4py" ]; then
  rm -rf "$work/sdist"
  echo "$package --hash=sha256:$sha256" > "$work/requirements.txt"
  "$venv/bin/pip" download -q --no-deps --no-binary :all: --no-build-isolation --require-hashes -d "$work/sdist" \
    -r "$work/requirements.txt" >> "$log" 2>&1 || skip "pip cannot download $package"
  mkdir "$work/shmem4py.new"
  tar -xzf "$work"/sdist/*.tar.gz --strip-components=1 -C "$work/shmem4py.new"
  mv "$work/shmem4py.new" "$work/shmem4py"
fi

echo "== shmem4py: build"
export PATH=$built:$PATH OSHCC=$built/oshcc
"$venv/bin/pip" install -q --no-deps --no-build-isolation --no-cache-dir --force-reinstall "$work/shmem4py" >> "$log" 2>&1 || {
  tail -n 40 "$log" >&2
  echo "npushmem: shmem4py does not build; all output is in $log" >&2
  exit 1
}
root=$PWD
cd "$work/shmem4py"
for pes in 1 2 4; do
  echo "== shmem4py: its tests on $pes PEs"
  oshrun -n "$pes" --timeout 300 "$venv/bin/python" -m unittest discover -q -s test > "$work/tests-$pes.txt" 2>&1 || {
    code=$?
    cat "$work/tests-$pes.txt" >&2
    echo "npushmem: shmem4py's tests fail on $pes PEs (exit code $code)" >&2
    exit 1
  }
  grep -hE '^(Ran|OK)' "$work/tests-$pes.txt" | sort | uniq -c
done

echo "== example: neighbours' features of a graph, on 3 PEs"
oshrun -n 3 --timeout 60 "$venv/bin/python" "$root/examples/python/neighbours.py" "$root/examples/data/karate.txt"

echo "== example: a graph as .npz, through npushmem gnn on 3 PEs and through NumPy"
check=$root/examples/python/gnn_check.py
"$venv/bin/python" "$check" --make "$work/graph.npz" "$work/x.npy"
for options in "--weights --norm gcn --layers 2" "--weights --backward --reduce mean"; do
  # shellcheck disable=SC2086 # several options
  npushmem gnn --graph "$work/graph.npz" --features "$work/x.npy" --pes 3 --engine roce --repeat 1 --out "$work/y.npy" $options > "$work/gnn.txt" 2>&1 || {
    cat "$work/gnn.txt" >&2
    exit 1
  }
  # shellcheck disable=SC2086
  "$venv/bin/python" "$check" "$work/graph.npz" "$work/x.npy" "$work/y.npy" $options
done
