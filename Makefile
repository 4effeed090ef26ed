# Every target sets up what it needs in .venv; all that is required is Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Processes that tests start would each compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow browser postgres test-wheel lint typed site format schemas bench clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

demo: $(VENV)/.run ## Hold a conversation with the order desk, without a key, try it on simulated users, and show why it said what it said
	@$(BIN)/arq-graph demo
	@$(BIN)/arq-graph explain

test: $(VENV)/.dev ## Run the tests (no network, no key)
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 -m "not slow" --ignore=tests/slow

test-slow: $(VENV)/.slow browser postgres ## Run the slower suites: killed processes, random answers, real servers, a browser
	$(BIN)/python -m pytest -q -n 2 -m slow --durations=5

browser: ## Install Chromium for the tests that look at pages, where it is missing and may be installed
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
		|| [ "$$(id -u)" != 0 ] || { apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; }

postgres: ## Install Postgres for the tests that keep conversations in it, where it is missing and may be installed
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 \
		|| [ "$$(id -u)" != 0 ] || { apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql; }

test-wheel: | $(BIN)/python ## Build the wheel and see that it works: with the lowest versions too, and other Pythons
	@$(BIN)/python -m pip install -qq "uv>=0.13"
	$(BIN)/python tests/wheel.py

# mypy and mkdocstrings do not know package-dir: they read the folders where they are installed to.
typed:
	@rm -rf build/typed && mkdir -p build/typed/arq_graph
	@ln -s $(CURDIR)/arq_graph/* $(CURDIR)/nodes $(CURDIR)/milestones build/typed/arq_graph/
	@ln -s $(CURDIR)/examples $(CURDIR)/benchmarks $(CURDIR)/tests build/typed/

lint: $(VENV)/.dev typed ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# What a newcomer copies from a page has types, too.
	@mkdir build/typed/pages
	@for tool in get_order cancel_order; do echo "def $$tool(order_id: str) -> str: ..."; done > build/typed/orders.pyi
	@for page in README.md docs/*.md; do \
		sed -n '/^```python/,/^```/{/^```/!p}' $$page > build/typed/pages/$$(basename $$page .md).py; done
	cd build/typed && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml arq_graph examples benchmarks pages
	cd build/typed && $(CURDIR)/$(BIN)/basedpyright --level error -p $(CURDIR)/pyproject.toml --pythonpath $(CURDIR)/$(BIN)/python pages

site: $(VENV)/.docs typed ## Build the documentation in build/site; a broken link or a missing docstring is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(VENV)/.dev ## Format the code
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

schemas: $(VENV)/.run ## Write the schemas that editors find beside the examples
	@for kind in agent tools milestones suite; do $(BIN)/arq-graph schema $$kind > examples/.schemas/$$kind.json; done

bench: $(VENV)/.bench ## Print calls, characters, tokens and times
	$(BIN)/python -m benchmarks

clean: ## Remove what the other targets made
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "arq_graph needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 …"; exit 1; }
	@echo "Making a virtual environment in $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --upgrade pip

$(VENV)/.run: pyproject.toml | $(BIN)/python
	@echo "Installing arq_graph into $(VENV) (about a minute) …"
	@$(BIN)/python -m pip install -qq -e ".[cli]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing arq_graph and what its tests need into $(VENV) (about two minutes) …"
	@$(BIN)/python -m pip install -qq -e ".[cli]" --group dev
	@touch $@ $(VENV)/.run

$(VENV)/.docs: $(VENV)/.run
	$(BIN)/python -m pip install -qq --group docs
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install -qq -e ".[cli,bench,cluster]"
	@touch $@

$(VENV)/.slow: $(VENV)/.dev
	$(BIN)/python -m pip install -qq --group slow
	@touch $@
