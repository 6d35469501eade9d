# outboxd: `make` alone lists what can be done.
.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=
# How long `make chaos` lasts, in seconds, and what decides which harm is done when.
SECONDS ?= 180
SEED ?=
# What `make bench` measures, all if empty.
ONLY ?=
# Tests wait more than they compute: some at a time.
WORKERS ?= 3

.PHONY: help install demo test test-system lint check format lock bench chaos chaos-relay clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## make the virtual environment with everything in it

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "outboxd needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { echo "no virtual environment could be made: on Debian, apt-get install python3-venv"; \
	       rm -rf $(VENV); exit 1; }
	@echo "installing into $(VENV)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[dev,demo]' >&2
	@touch $(STAMP)

demo: $(STAMP) ## the shop, live, on an embedded PostgreSQL and a local SQS (ARGS="--orders 200 ...")
	@$(BIN)/outboxd demo $(ARGS)

test: $(STAMP) ## all tests that need neither root nor system packages
	$(BIN)/pytest -n $(WORKERS) $(ARGS)
	$(BIN)/pytest -m system -n $(WORKERS) $(ARGS)

test-system: $(STAMP) ## the tests that use Debian packages (promtool, PgBouncer), installing them as root
	tests/system/install-packages
	$(BIN)/pytest -m packages -n 2 --dist loadfile $(ARGS)

lint: $(STAMP) ## format, lint, types and layers, without running anything
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint ## what must hold before a commit: lint and the fast tests
	$(BIN)/pytest -n $(WORKERS) $(ARGS)

format: $(STAMP) ## format the code and sort its imports
	$(BIN)/ruff check --select I --fix .
	$(BIN)/ruff format .

lock: ## renew constraints.txt from the ranges in pyproject.toml
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --upgrade '.[dev,demo]'
	{ echo '# Exact versions that outboxd is tested with; pyproject.toml holds the ranges.'; \
	  echo '# Renew with: make lock'; \
	  build/lock/bin/python -m pip freeze --exclude outboxd; } > constraints.txt

bench: $(STAMP) ## measure the daemon beside its floors and its peers (ONLY="consume effect relay")
	@$(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY)) $(ARGS)

chaos: $(STAMP) ## kill, freeze and cut off under load, and count what was lost (SECONDS=180 SEED=7)
	@$(BIN)/python tests/chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

chaos-relay: $(STAMP) ## the same for three relays alone: lost, repeated, out of order (SECONDS=180 SEED=7)
	@$(BIN)/python tests/chaos_relay --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

clean: ## remove the virtual environment and what tools left behind
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
