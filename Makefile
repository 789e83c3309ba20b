# Two commands matter: `make demo` and `make test`. Both set everything up first.
# Only relative paths here: make cannot quote a checkout folder that has spaces in its name.
.PHONY: setup demo test test-slow lint format clean help translations pictures
.PHONY: windows-tools windows-installer windows-lock test-windows wheel
.DEFAULT_GOAL := help
ARGS ?=
export PYTHON

help:
	@echo 'make demo       a throw-away fleet of three nodes on this PC answers a question'
	@echo '                (options: make demo ARGS="--nodes 2 --prompt hello")'
	@echo 'make test       formatting, lint, types, import rules and tests; ends non-zero if one fails'
	@echo 'make test-slow  the tests that take more than ten seconds each'
	@echo 'make lint       the same checks without the tests'
	@echo 'make format     put the code into the house format'
	@echo 'make translations  collect the strings of the desktop app, make the .qm files'
	@echo 'make pictures   draw the pictures of docs/ anew'
	@echo 'make setup      .venv and Debian packages; the others do this by themselves'
	@echo 'make windows-installer  the signed Windows installers, in dist/windows (docs/windows-build.md)'
	@echo 'make test-windows       builds them quickly and puts them through their paces under Wine'
	@echo 'make wheel      a wheel for pipx, in dist'
	@echo 'make clean      remove .venv and everything that was built'

setup:
	@.ci/setup

demo: setup
	@.venv/bin/fleetapp demo $(ARGS)

test: setup
	@.ci/check test

test-slow: setup
	@.ci/check slow

lint: setup
	@.ci/check lint

format: setup
	@.venv/bin/ruff check --quiet --fix-only .
	@.venv/bin/ruff format --quiet .

translations: setup
	@.ci/translations

pictures: setup
	@.ci/pictures

windows-tools: setup
	@.ci/setup windows
	@.venv/bin/python -m tests.support.wine

windows-installer: setup
	@.ci/setup windows
	@.venv/bin/python -m installer.build $(ARGS)

test-windows: windows-tools
	@.venv/bin/python -m installer.build --fast $(ARGS)
	@QT_QPA_PLATFORM=offscreen .venv/bin/python -X faulthandler -m pytest -q --durations=5 tests/packaging $(PYTEST_ARGS)

windows-lock: setup
	@.venv/bin/python -m installer.lock

wheel: setup
	@.venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

clean:
	@rm -rf .venv .make build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
