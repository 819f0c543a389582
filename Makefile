# `make` lists the targets. `make build` and `make test` are all that a fresh machine needs.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROFILE ?= profiles/rtx-pro-6000.toml
OUT ?= out
# More options for pytest, in every lane: make test PYTEST='-k lock'
PYTEST ?=
PARALLEL := -n auto --maxprocesses 8 --dist worksteal

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/envspec: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

.PHONY: build
build: $(BIN)/envspec ## bootstrap the tool and build $(PROFILE) into $(OUT)
	$(BIN)/envspec build $(PROFILE) --out $(OUT)

.PHONY: check
check: $(BIN)/envspec ## lint, format and types
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

.PHONY: test
test: check ## check, then the tests that need no network, no root and no GPU
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST)

.PHONY: test-real
test-real: $(BIN)/envspec ## tests on real wheels, downloaded once into uv's cache
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST) tests/real

.PHONY: test-faults
test-faults: $(BIN)/envspec ## kills, full disks, lost networks: a few of each kind
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST) tests/faults

.PHONY: test-all
test-all: deps test test-real test-faults ## every lane

.PHONY: deps
deps: ## as root: install what some tests need (zsh, busybox, linkers); they are skipped without
	@scripts/install-test-deps

.PHONY: acceptance
acceptance: $(BIN)/envspec ## build the real profile and compile with every JIT in it, without a GPU
	$(BIN)/python -m tests.acceptance.run --out $(OUT)
	$(BIN)/python -m pytest $(PYTEST) tests/acceptance

.PHONY: reproduce
reproduce: $(BIN)/envspec ## is it the same environment wherever it is built? beside plain uv
	$(BIN)/python benchmarks/reproduce.py

.PHONY: faults
faults: $(BIN)/envspec ## hundreds of faults (as root): what becomes of the environment that was there
	$(BIN)/python -m tests.faults.run

.PHONY: clean
clean: ## remove what make made, but not environments
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
