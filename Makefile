# Every target makes the virtual environment that it needs: a Python >= 3.11 and make are enough.
#
#   make demo                        train on handwritten digits; pictures in out/
#   make test                        run the tests;  ARGS='--full -k grad' goes to pytest
#   make test PYTHON=python3.13      the same in another Python, with the newest jaxlib for it
#   make check                       format, lint and types
#   make bench                       compare with JAX;  FILTER=dispatch chooses rows, ROUNDS=5 repeats
#   make clean                       remove environments and caches

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The first of these names that runs and is new enough, also behind a pyenv shim that refuses to run.
NAMES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python)
RUNS := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
override PYTHON := $(shell for name in $(NAMES); do \
    for python in $$name $${PYENV_ROOT:-$$HOME/.pyenv}/versions/*/bin/$$name; do \
    if $$python -c '$(RUNS)' >/dev/null 2>&1; then echo $$python; exit; fi; done; done)
VERSION := $(and $(PYTHON),$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))

DEMO := .venv/demo
TEST := .venv/test-$(VERSION)
BENCH := .venv/bench
ARGS ?=
FILTER ?=
ROUNDS ?= 5

.PHONY: help demo test check format lint types bench clean python

help:
	@sed -n '3,8s/^# *//p' Makefile

demo: $(DEMO)/.stamp
	@$(DEMO)/bin/python examples/digits.py $(ARGS)

test: $(TEST)/.stamp
	@$(TEST)/bin/python -m pytest -n 2 $(ARGS)

check: lint types

lint: $(TEST)/.stamp
	@echo "== ruff" && $(TEST)/bin/ruff check . && $(TEST)/bin/ruff format --check .

types: $(TEST)/.stamp
	@echo "== pyright" && $(TEST)/bin/pyright --pythonpath $(TEST)/bin/python

format: $(TEST)/.stamp
	@$(TEST)/bin/ruff check --fix . && $(TEST)/bin/ruff format .

bench: $(BENCH)/.stamp
	@$(BENCH)/bin/python benchmarks/run.py --jax-path $(BENCH)/jax --rounds $(ROUNDS) --filter '$(FILTER)'

clean:
	rm -rf .venv out build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment is complete when its stamp exists; it is made anew when pyproject.toml changes.
INSTALL = @echo "== $(@D): Python $(VERSION)" && rm -rf $(@D) && $(PYTHON) -m venv $(@D) \
    && $(@D)/bin/python -m pip --disable-pip-version-check install --progress-bar on

$(DEMO)/.stamp: pyproject.toml | python
	$(INSTALL) -e '.[demo]'
	@touch $@

$(TEST)/.stamp: pyproject.toml | python
	$(INSTALL) -e '.[demo,dev]'
	@touch $@

# JAX lies in a folder of its own, so that only its own processes see it.
$(BENCH)/.stamp: pyproject.toml | python
	$(INSTALL) -e . rich
	@jaxlib=$$($(@D)/bin/python -c 'import jaxlib; print(jaxlib.__version__)') \
	    && $(@D)/bin/python -m pip --disable-pip-version-check install --no-deps --target $(@D)/jax jax==$$jaxlib
	@touch $@

python:
	@test -n '$(VERSION)' || { echo "make: none of '$(NAMES)' is a working Python >= 3.11 with venv and ensurepip." \
	    "Name one: make PYTHON=/path/to/python (Debian and Ubuntu may need: apt install python3-venv)." >&2; exit 1; }
