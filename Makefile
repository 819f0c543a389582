# `make` lists the targets. `make build` and `make test` are all that a fresh machine needs.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROFILE ?= profiles/rtx-pro-6000.toml
OUT ?= out

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

.PHONY: deps
deps: $(BIN)/envspec ## what the tests need beyond Python: zsh, busybox
	@scripts/install-test-deps

.PHONY: check
check: $(BIN)/envspec ## lint, format and types
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

.PHONY: test
test: deps check ## check, then every test
	$(BIN)/python -m pytest

.PHONY: acceptance
acceptance: $(BIN)/envspec ## build the real profile and compile with every JIT in it, without a GPU
	$(BIN)/python -m tests.acceptance.run --out $(OUT)
	$(BIN)/python -m pytest -m built tests/acceptance

.PHONY: reproduce
reproduce: $(BIN)/envspec ## is it the same environment wherever it is built? beside plain uv
	$(BIN)/python benchmarks/reproduce.py

.PHONY: faults
faults: $(BIN)/envspec ## hundreds of faults (as root): what becomes of the environment that was there
	$(BIN)/python -m tests.faults.run

.PHONY: clean
clean: ## remove what make made, but not environments
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
