# Each target works alone on a machine that has Python 3.11 or newer and a C compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Programs of a real Moses, if they are there: what compares with them is tested then.
MOSES_BIN ?= $(wildcard ../shared/moses-bin)

# Without bytecode each of the thousands of commands that tests start would parse its modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types unit documents site wheel clean

demo: $(VENV)/compiled
	$(BIN)/phrasetool demo

test: $(VENV)/installed-dev lint types unit

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

unit: $(VENV)/installed-dev
	MOSES_BIN="$(abspath $(MOSES_BIN))" $(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

# What is generated in the documents: the command reference, tables and numbers of results.
documents: $(VENV)/installed-dev
	$(BIN)/python docs/generate_commands.py
	$(BIN)/python benchmarks/result_tables.py
	$(BIN)/python docs/generate_wrong_uses.py

site: $(VENV)/installed-dev
	$(BIN)/mkdocs build --strict

# A wheel for this Python and platform, with compiled kernels.
wheel: $(VENV)/installed-dev
	rm -rf build
	PHRASETOOL_COMPILE=1 $(BIN)/pip wheel --no-build-isolation --no-deps --wheel-dir dist .
	rm -rf build

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# What the demo needs, which is a part of all that can be installed.  Kernels are compiled with the base alone, while
# the rest is installed; Python compiles bytecode when it is first needed.
INSTALL := $(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable
$(VENV)/compiled: pyproject.toml constraints.txt phrasetool/kernel_signatures.txt moses_compat/kernel_signatures.txt \
		| $(VENV)/bin/python
	$(INSTALL) .
	$(BIN)/phrasetool compile & compiler=$$!; $(INSTALL) '.[demo]' && wait $$compiler
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) demo-output site
