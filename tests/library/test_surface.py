"""The public library: names, examples in docstrings, and the tour."""

import ast
import doctest
import importlib
import inspect
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import phrasetool
from phrasetool import _LIBRARY
from tests.commands import clean_environment

ROOT = Path(__file__).parents[2]

SENTENCE_MODELS = ("tagger", "syntax", "classifier", "autoencoder", "translator")


@pytest.fixture
def at_work(demo, tmp_path, monkeypatch):
    """Globals of the examples, in a working folder with ten sentences for tuning."""
    monkeypatch.chdir(tmp_path)
    for side in ("zh", "en"):
        lines = (demo / f"engine/dev.{side}").read_text("utf-8").splitlines(keepends=True)
        Path(f"dev.{side}").write_text("".join(lines[:10]), "utf-8")
    return {
        "demo_model": str(demo / "model"), "demo_table": str(demo / "engine/phrase-table.gz"),
        **{f"demo_{name}": str(demo / name) for name in SENTENCE_MODELS},
        "demo_ini": str(demo / "engine/moses.ini"), **{name: getattr(phrasetool, name) for name in _LIBRARY},
    }  # fmt: skip


MODULES = ["phrasetool", *sorted({name.partition(":")[0] for name in _LIBRARY.values() if ".library." in name})]


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module, at_work):
    doctests = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module), globs=at_work)
    examples = [test for test in doctests if test.examples]
    assert examples
    runner = doctest.DocTestRunner(verbose=False)
    for test in examples:
        recorded = []
        runner.run(test, out=recorded.append)
        assert runner.failures == 0, "".join(recorded)


@pytest.mark.parametrize("name", sorted(_LIBRARY))
def test_public_names_are_documented(name):
    value = getattr(phrasetool, name)
    assert inspect.getdoc(value)
    if inspect.isfunction(value):
        text = inspect.getdoc(value)
        assert "Args:" in text
        assert "Raises:" in text
        assert set(inspect.signature(value).parameters) <= set(text.replace(",", " ").replace(":", " ").split())


def test_the_stub_has_the_same_names():
    tree = ast.parse((ROOT / "phrasetool/__init__.pyi").read_text())
    stub_names = {
        alias.asname: f"{node.module}:{alias.name}"
        for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }  # fmt: skip
    assert stub_names == _LIBRARY


def test_no_package_has_the_name_of_a_function():
    # Importing a module of such a package would replace the function with the package.
    modules = {module.name for module in pkgutil.iter_modules(phrasetool.__path__)}
    assert not modules & _LIBRARY.keys()


def test_unknown_names_and_dir():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        phrasetool.nothing
    assert set(_LIBRARY) < set(dir(phrasetool))


def test_the_import_loads_no_large_packages():
    code = "import sys, phrasetool; sys.exit(len({'numpy', 'numba', 'torch', 'pandas'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], env=clean_environment(), timeout=60, check=True)


def test_the_tour(demo, tmp_path):
    """All cells of the notebook run and print what it shows, except for numbers that depend on the model."""
    shutil.copytree(demo, tmp_path / "demo-output")
    notebook = tmp_path / "tour.ipynb"
    shutil.copy(ROOT / "docs/tour.ipynb", notebook)
    code = "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2]); import generate_tour as tour\n"
    code += "tour.NOTEBOOK = Path(sys.argv[1]); tour.main()"
    outcome = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, notebook, ROOT / "docs"], cwd=tmp_path,
        env=clean_environment(MPLCONFIGDIR=os.environ.get("MPLCONFIGDIR", str(tmp_path))), capture_output=True,
        text=True, timeout=280, check=False,
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stderr
    shown, printed = (_printed_by_cells(path) for path in (ROOT / "docs/tour.ipynb", notebook))
    assert len(shown) == len(printed) > 6
    for expected, actual in zip(shown, printed, strict=True):
        # Which phrases are similar or removed depends on the model.
        assert len(expected.splitlines()) == len(actual.splitlines())
        assert re.findall("BLEU|entries|scores|signature|kept|float32|difference", expected) == re.findall(
            "BLEU|entries|scores|signature|kept|float32|difference", actual
        )
    assert "<svg" in notebook.read_text("utf-8")


def _printed_by_cells(notebook):
    cells = [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    return ["".join(text for output in cell["outputs"] for text in output.get("text", [])) for cell in cells]
