# Two commands do everything on a fresh machine: `make demo` and `make test`. The rest serves development and CI.
SHELL := /bin/bash
export PATH := $(PATH):$(HOME)/.cargo/bin
CARGO ?= cargo
NPUSHMEM = $(CARGO) run -q --locked -p npushmem-cli --
TARGET = $(or $(CARGO_TARGET_DIR),target)
PREFIX ?= /usr/local

EXAMPLES = $(notdir $(sort $(wildcard examples/[0-9][0-9]-*)))

.PHONY: demo examples test test-package test-rdma bench-rdma test-python lint doc abi-check bench compare header install setup

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

# Runs the examples as a person would, on 4 PEs (the mixture of experts on 8): those with kernels on both engines, and those in C.
examples: setup
	$(CARGO) build -q --locked -p npushmem-cli -p npushmem-capi -p npushmem-examples
	@for engine in mapped roce; do for example in $(EXAMPLES); do \
	  pes=4; if [ $$example = 08-moe ]; then pes=8; fi; \
	  echo; echo "== $$example, $$pes PEs, $$engine"; \
	  NPUSHMEM_ENGINE=$$engine $(TARGET)/debug/npushmem run -n $$pes -- $(TARGET)/debug/$$example || exit 1; \
	done; done
	@mkdir -p $(TARGET)/examples-c
	@for example in hello ring pi; do \
	  echo; echo "== $$example in C, 4 PEs"; \
	  $(TARGET)/debug/oshcc examples/c/$$example.c -o $(TARGET)/examples-c/$$example || exit 1; \
	  $(TARGET)/debug/oshrun -n 4 $(TARGET)/examples-c/$$example || exit 1; \
	done

# The tests of the C API start programs that `cargo test` alone does not build: oshcc, oshrun and libnpushmem.so.
test: setup
	$(CARGO) build --locked --workspace
	$(CARGO) test --locked --workspace

# Packs the crates as for crates.io, and builds and runs a copy of examples/template outside this repository against them.
test-package: setup
	$(CARGO) build -q --locked -p npushmem-cli
	bash scripts/test-package.sh $(TARGET)/debug

# Builds shmem4py (PyPI) against our oshcc and runs its own tests on 1, 2 and 4 PEs. Needs network the first time, else is skipped.
test-python: setup
	$(CARGO) build -q --locked -p npushmem-cli -p npushmem-capi
	bash scripts/test-python.sh $(TARGET)/debug

# The verbs wire on Linux Soft-RoCE in a virtual machine: two hosts, real packets, with and without loss (docs/rdma.md). Where the machine cannot
# be had it says SKIPPED, not passed.
test-rdma: setup
	@python3 tests/rdma/run.py test || [ $$? = 77 ]

# Latency, bandwidth and message rate over verbs beside perftest's, in the same machine and run.
bench-rdma: setup
	@python3 tests/rdma/run.py bench || [ $$? = 77 ]

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

# Runs one OpenSHMEM benchmark over our library and every other one found (Open MPI's; Sandia's where SOS_HOME is), in turn, and prints ratios.
# ROUNDS=5 for steadier medians; COMPARE=quick for a short run.
compare: setup
	$(CARGO) build -q --release --locked -p npushmem-cli -p npushmem-capi
	python3 bench/compare/compare.py $(TARGET)/release $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(filter quick,$(COMPARE)),--quick)

# Writes the generated parts of capi/include anew from host/shm/table.rs and constants.rs.
header: setup
	NPUSHMEM_WRITE_HEADERS=1 $(CARGO) test -q --locked -p npushmem-capi --test header

# Programs, libnpushmem.so (and libsma.so), headers and pkg-config file: make install PREFIX=/opt/npushmem
install: setup
	$(CARGO) build -q --release --locked -p npushmem-cli -p npushmem-capi
	PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" bash scripts/install.sh $(TARGET)/release
