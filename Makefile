# Two commands do everything on a fresh machine: `make demo` and `make test`. The rest serves development and CI.
SHELL := /bin/bash
export PATH := $(PATH):$(HOME)/.cargo/bin
CARGO ?= cargo
NPUSHMEM = $(CARGO) run -q --locked -p npushmem-cli --

.PHONY: demo test lint doc abi-check bench setup

setup:
	@bash scripts/setup.sh

# Aggregates a small real graph and an R-MAT graph over 4 emulated NPUs, on both engines, and checks every value.
demo: setup
	$(CARGO) build -q --locked -p npushmem-cli
	@for engine in mapped roce; do \
	  echo; echo "== Zachary's karate club, 4 PEs, $$engine"; \
	  $(NPUSHMEM) gnn --graph examples/data/karate.txt --pes 4 --dim 16 --reduce mean --engine $$engine --verify || exit 1; \
	  echo; echo "== R-MAT, 4096 nodes, 4 PEs, $$engine"; \
	  $(NPUSHMEM) gnn --rmat 12 --pes 4 --dim 64 --engine $$engine --verify || exit 1; \
	done

test: setup
	$(CARGO) test --locked --workspace

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

doc: setup
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps

# Compares ffi/include/acl.h with a real set of ACL headers: ASCEND_HOME_PATH or ACL_INCLUDE, else those of a PyPI wheel.
abi-check: setup
	bash ffi/abi-check.sh

# Prints figures of this machine as ratios to its bare limits, taken in one run.
bench: setup
	$(CARGO) build -q --release --locked -p npushmem-cli
	$(CARGO) run -q --release --locked -p npushmem-bench
