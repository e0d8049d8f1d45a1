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

RUNS := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
PYTHON := $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
    if $$python -c '$(RUNS)' >/dev/null 2>&1; then echo $$python; break; fi; done)
endif
VERSION := $(shell $(PYTHON) -c '$(RUNS)' >/dev/null 2>&1 && $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

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
	@test -n '$(VERSION)' || { echo "make: no working Python >= 3.11 with venv and ensurepip found as \
	'$(or $(PYTHON),python3, python3.13, python3.12, python3.11, python)'. \
	Name one: make PYTHON=/path/to/python (on Debian and Ubuntu also: apt install python3-venv)." >&2; exit 1; }
