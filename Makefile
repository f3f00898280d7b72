# Two commands: `make run` shows the main job, `make test` checks everything.
# Both build .venv from requirements.lock on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: run test test-all browser bench docs site wheel lock three clean

run: $(STAMP)
	$(BIN)/polhode compare fast_top --out results --overwrite

test: $(STAMP)
	$(BIN)/ruff check src tests benchmarks docs tools validation
	$(BIN)/ruff format --check src tests benchmarks docs tools validation
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -m "not slow"

test-all: $(STAMP)
	$(BIN)/pytest

# Installs Chromium from the system's packages (Debian, Ubuntu), in which the viewer is tested; without it those tests
# are skipped.
browser:
	@command -v chromium > /dev/null || apt-get install --yes --quiet chromium > /dev/null \
	  || (apt-get update --quiet > /dev/null && apt-get install --yes --quiet chromium > /dev/null)

bench: $(STAMP)
	$(BIN)/polhode bench

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'polhode needs Python 3.11 or newer; this is ' + sys.version.split()[0])"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

docs: $(STAMP)
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build/html
	@echo "written       docs/_build/html/index.html"

# The pages under their version, beside those of other versions that are in site/ already.
site: docs
	$(BIN)/python -m tools.site

# Wheel and sdist into dist/, each tried with README's code and commands in an empty environment.
wheel: $(STAMP)
	$(BIN)/python -m tools.try_wheel

# Every version with its hashes, for all platforms and Pythons; versions already locked are kept (UPGRADE=--upgrade: newest).
UPGRADE ?=
lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	printf 'jax<0.11\njaxlib<0.11\n' > build/lock/untested
	build/lock/bin/uv pip compile --quiet --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate $(UPGRADE) \
	  --constraints build/lock/untested --output-file requirements.lock pyproject.toml

# The 3D library of the viewer, as one file within the package, with its licence beside it.
three:
	cd vendor/three && npm install --no-package-lock --ignore-scripts --no-fund --no-audit
	cd vendor/three && npx esbuild entry.js --bundle --minify --legal-comments=none --format=iife --global-name=THREE \
	  --banner:js="/* three.js 0.187.0, MIT licence, (c) 2010-2026 three.js authors: see three.LICENSE */" \
	  --outfile=../../src/polhode/viewer/three.js
	cp vendor/three/node_modules/three/LICENSE src/polhode/viewer/three.LICENSE

clean:
	rm -rf $(VENV) results build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
