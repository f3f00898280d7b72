# Two commands: `make run` shows the main job, `make test` checks everything.
# Both build .venv from requirements.lock on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: run test test-all bench lock clean

run: $(STAMP)
	$(BIN)/polhode compare fast_top --out results --overwrite

test: $(STAMP)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -m "not slow"

test-all: $(STAMP)
	$(BIN)/pytest

bench: $(STAMP)
	$(BIN)/polhode bench

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'polhode needs Python 3.11 or newer; this is ' + sys.version.split()[0])"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

lock:
	$(BIN)/python -m pip install --quiet --upgrade -e ".[dev]"
	$(BIN)/python -m pip freeze --exclude-editable > requirements.lock

clean:
	rm -rf $(VENV) results build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
