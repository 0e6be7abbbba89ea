# Each target works alone on a machine that has Python 3.11 or newer and a C compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Programs of a real Moses, if they are there: what compares with them is tested then.
MOSES_BIN ?= $(wildcard ../shared/moses-bin)

# Without bytecode each of the thousands of commands that tests start would parse its modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types unit documents site wheel clean

demo: $(VENV)/installed-demo
	$(BIN)/phrasetool demo

test: $(VENV)/installed-dev lint types unit

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

# Libraries of kernels that are current are not compiled again.
unit: $(VENV)/installed-dev
	$(BIN)/phrasetool compile --quiet
	MOSES_BIN="$(abspath $(MOSES_BIN))" $(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

# What is generated in the documents: the command reference, tables and numbers of results.
documents: $(VENV)/installed-dev
	$(BIN)/phrasetool compile --quiet
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

# Kernels are compiled with the base alone, while the rest is installed: those that the demo calls, or all.
# Python compiles bytecode when it is first needed; that of PyTorch, ten seconds of one core, while the demo begins, whose
# first steps leave a core idle.
INSTALL := $(BIN)/pip install --quiet --no-compile --constraint constraints.txt
COMPILE_AND_INSTALL = $(BIN)/phrasetool compile $(1) & compiler=$$!; $(INSTALL) 'phrasetool[$(2)]' && wait $$compiler
SIGNATURES := phrasetool/kernel_signatures.txt moses_compat/kernel_signatures.txt
$(VENV)/installed-demo: pyproject.toml constraints.txt $(SIGNATURES) | $(VENV)/bin/python
	$(INSTALL) --editable .
	$(call COMPILE_AND_INSTALL,--demo,demo)
	$(BIN)/python -c 'import gensim.models, torch._dynamo' > /dev/null 2>&1 &
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable .
	$(call COMPILE_AND_INSTALL,,dev)
	touch $@

clean:
	rm -rf $(VENV) demo-output site
