# make demo                          index the sample handbook and answer three questions
# make demo DOCS=folder Q="..."      the same for your own files
# make test                          run the tests
# make lint / make types / make wheel

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint types wheel clean

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

test: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(TESTS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy hichunk_haystack

wheel: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

clean:
	rm -rf $(VENV) .demo dist build

$(BIN)/python:
	@echo "Installing into $(VENV): about 1.7 GB, a minute or more"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[local,files,cli]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[local,files,cli,hayhooks,evaluation,test]'
	touch $@ $(VENV)/.demo

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[local,files,cli,hayhooks,evaluation,test,dev]'
	touch $@ $(VENV)/.test $(VENV)/.demo
