# gpuledger: `make run` has the whole service, `make test` sees it proven.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEEDS ?= 100
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test check bench simulate lock

help: ## Show what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(VENV)/.ready ## Make the virtual environment with the locked packages

$(VENV)/.ready: requirements-dev.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: setup ## Run the whole service on an embedded PostgreSQL and a simulated fleet; KAFKA=1 adds a broker
	@exec $(BIN)/gpuledger dev $(if $(KAFKA),--kafka) $(ARGS)

test: setup ## Run every test
	$(BIN)/python -m pytest $(ARGS)

check: setup ## Lint, types, import arrows, dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .

bench: setup ## Run the benchmarks; ARGS names one
	$(BIN)/gpuledger bench $(ARGS)

simulate: setup ## Run the seeded simulation; SEEDS says how many
	$(BIN)/python -m pytest tests/simulation --simulation-seeds=$(SEEDS) -p no:randomly --timeout=0

lock: setup ## Resolve the locked packages anew
	$(BIN)/pip-compile --quiet --strip-extras --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links --extra embedded -o requirements.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --upgrade --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-find-links --extra embedded --extra dev -o requirements-dev.lock pyproject.toml
