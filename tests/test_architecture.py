import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import clean_environment

ROOT = Path(__file__).parent.parent
ROOMS = {"cli": "phrasetool_cli", "moses_compat": "moses_compat", "phrasetool": "phrasetool"}
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def imports(tree):
    """Every module a file names in an import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            yield node.module


def tops(path):
    return {name.split(".")[0] for name in imports(ast.parse(path.read_text("utf-8")))}


def modules(folder):
    return [path for path in MODULES if (ROOT / folder) in path.parents]


def test_rooms_are_there():
    assert all(modules(room) for room in ROOMS)


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("phrasetool", {"moses_compat", "phrasetool_cli", "cli", "click", "tqdm", "rich"}),
        ("moses_compat", {"phrasetool_cli", "cli", "click", "tqdm", "rich"}),
        ("phrasetool/scoring", {"torch"}),
        ("phrasetool/pruning", {"torch"}),
        ("phrasetool/models", {"torch"}),
        ("phrasetool/encoders", {"pathlib", "os", "io"}),
        ("phrasetool/objectives", {"pathlib", "os", "io"}),
        ("", {"pickle", "tests", "cPickle", "dill", "joblib"}),
    ],
)
def test_imports_point_one_way(room, forbidden):
    wrong = {str(path.relative_to(ROOT)): found for path in modules(room) if (found := tops(path) & forbidden)}
    assert not wrong


def test_no_prints_and_no_exits_outside_the_command_line():
    for path in modules("phrasetool") + modules("moses_compat"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in ("print", "sys.exit", "exit", "os._exit"), f"{path}:{node.lineno}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_everything_public_has_a_docstring(path):
    tree = ast.parse(path.read_text("utf-8"))
    assert ast.get_docstring(tree)
    missing = []

    def visit(node):
        for child in node.body:
            if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith("_"):
                if not ast.get_docstring(child):
                    missing.append(f"{child.name} (line {child.lineno})")
                if isinstance(child, ast.ClassDef):
                    visit(child)

    visit(tree)
    assert not missing


def test_no_module_has_a_room_for_leftovers():
    assert not [path for path in MODULES if re.search(r"util|helper|manager|misc|common", path.name)]


@pytest.mark.parametrize(
    "module", ["phrasetool.scoring.scorer", "moses_compat.jobs.prune", "moses_compat.jobs.annotate"]
)
def test_no_torch_is_loaded(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), timeout=120, check=False)
    assert done.returncode == 0
