# emu: everything it takes to install, run, test and measure it. `make` alone lists the targets.

PYTHON ?=
PROFILES = native,roce,roce-63,ndr
SIZES = 64B,4KiB,64KiB,1MiB
FRAMES = 1_000_000
JOBS = 2
SEED ?=

# Debian keeps ip, ifconfig and sysctl where an ordinary user's PATH does not look.
export PATH := $(PATH):/usr/sbin:/sbin
export PYTHON

python = .venv/bin/python
emu = .venv/bin/emu
# Ordinary users' tests run inside a user namespace, where there is one to be had.
pytest = scripts/with-caches $(python) -m emu.lab.rootless $(python) -m pytest -n $(JOBS) --dist loadgroup

.DEFAULT_GOAL := help
.PHONY: help install install-for-tests demo test test-all lint bench fuzz

help:
	@echo 'make install    system packages and .venv: whatever is missing'
	@echo 'make demo       the main job: RDMA WRITEs over a leaf-spine fabric of namespaces, as a latency table'
	@echo 'make test       lint, types and the test suite, on JOBS cores (test-all: the long tests too)'
	@echo 'make lint       ruff and mypy'
	@echo 'make bench      events, speed and memory'
	@echo 'make fuzz       FRAMES hostile frames against parsers and machines (1,000,000; SEED, JOBS)'

install:
	@scripts/install.sh

install-for-tests:
	@scripts/install.sh tests

demo: install
	@$(emu) latency --profile $(PROFILES) --sizes $(SIZES)

test: install-for-tests lint
	$(pytest) -m 'not long'

test-all: install-for-tests lint
	$(pytest)

lint: install
	@scripts/with-caches $(python) -m ruff check .
	@scripts/with-caches $(python) -m ruff format --check .
	@scripts/with-caches $(python) -m mypy

bench: install
	@$(python) -m tests.bench

fuzz: install
	@$(python) -m tests.fuzz --frames $(FRAMES) --jobs $(JOBS) $(if $(SEED),--seed $(SEED))
