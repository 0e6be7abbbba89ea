"""Layers of the code, import cycles, forbidden imports, and output outside the command line."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

from phrasetool.kernels.building import SIGNATURES, signatures
from tests.commands import clean_environment

ROOT = Path(__file__).parent.parent
HOUSE = {
    "phrasetool": ROOT / "phrasetool",
    "moses_compat": ROOT / "moses_compat",
    "phrasetool_cli": ROOT / "cli/phrasetool_cli",
}
MODULES = sorted(path for room in HOUSE.values() for path in room.rglob("*.py"))
# Modules of the phrase encoder that scoring, `--help` and `phrasetool compile` need; torch may be missing there.
TORCH_FREE = (
    "dense_kernels",
    "kinds",
    "mean_kernels",
    "model",
    "neighbours",
    "parameters",
    "rae_kernels",
    "rae_sgd_kernels",
    "scoring",
    "settings",
    "start",
)
# Layers of packages and top-level modules, from the lowest.  They import only from lower layers; those of the lowest
# layer may import each other.
FLOORS = {
    "phrasetool": [
        ["errors", "phrases", "options", "pipeline", "text_splitting", "watch"], ["cluster", "disk"],
        ["kernels"],
        ["vocabulary", "unique_phrases", "ranking"], ["augment", "pivot"],
        ["embeddings"], ["nn"], ["smt"], ["pruning"], ["export"], ["text_encoders"],
        ["models"], ["training"], ["bert"], ["autoencoder"], ["phrase_encoder"], ["tagger"], ["syntax"],
        ["translator", "pair_classifier"], ["bitext"],
        ["library"], ["__main__"],
    ],
    "moses_compat": [
        ["files", "pages"], ["lines"], ["tables"], ["corpora"], ["ini"], ["measures"], ["engine"], ["jobs"],
        ["table_report", "experiments"], ["library"],
    ],
    "phrasetool_cli": [
        [
            "checks", "command", "config_file", "encoder_options", "json_output", "messages", "options",
            "parameter_types", "process", "progress", "prune_summary", "summaries",
        ],
        ["train", "demo"], ["commands"], ["main"], ["console"],
    ],
}  # fmt: skip


def name_of(path):
    """Return the name under which a file is imported."""
    package, folder = next((name, folder) for name, folder in HOUSE.items() if path.is_relative_to(folder))
    parts = [package, *path.relative_to(folder).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {name_of(path): path for path in MODULES}


@cache
def nodes(path):
    """Return all nodes of the syntax tree of a file."""
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


@cache
def imports(path):
    """Return all modules that a file imports, including imports within functions."""
    collected = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            collected |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            collected |= {name if name in PATHS else node.module for name in names}
    return collected


@cache
def known():
    """Return, for each module, the modules of this repository that it imports."""
    return {name: imports(path) & PATHS.keys() - {name} for name, path in PATHS.items()}


def tops(path):
    return {name.split(".")[0] for name in imports(path)}


def modules(folder):
    return [path for path in MODULES if path.is_relative_to(ROOT / folder)]


def floor_of(name):
    """Return the layer of a module in its package, None for the package's own `__init__`."""
    package, *inner = name.split(".")
    if not inner:
        return None
    floors = [number for number, rooms in enumerate(FLOORS[package]) if inner[0] in rooms]
    assert len(floors) == 1, f"{name} stands on no floor; give its room one in FLOORS"
    return floors[0]


def test_packages_import_only_lower_layers():
    wrong = []
    for name, others in known().items():
        for other in others:
            if name.split(".")[0] != other.split(".")[0] or None in (floor_of(name), floor_of(other)):
                continue
            same = name.split(".")[1] == other.split(".")[1]
            if floor_of(other) > floor_of(name) or (floor_of(other) == floor_of(name) and not same and floor_of(name)):
                wrong.append(f"{name} -> {other}")
    assert not wrong


def test_no_import_cycles():
    try:
        TopologicalSorter(known()).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_each_command_has_a_module():
    from phrasetool_cli.main import COMMANDS

    files = modules("cli/phrasetool_cli/commands")
    assert {path.stem for path in files} - {"__init__"} == {name.replace("-", "_") for name in COMMANDS}


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("phrasetool", {"moses_compat", "phrasetool_cli", "cli", "click", "tqdm", "rich"}),
        ("moses_compat", {"phrasetool_cli", "cli", "click", "tqdm", "rich"}),
        *((f"phrasetool/phrase_encoder/{name}.py", {"torch"}) for name in TORCH_FREE),
        ("phrasetool/pruning", {"torch"}),
        ("phrasetool/models", {"torch"}),
        ("phrasetool/nn", {"pathlib", "os", "io"}),
        ("", {"pickle", "tests", "cPickle", "dill", "joblib"}),
    ],
)
def test_forbidden_imports(room, forbidden):
    wrong = {str(path.relative_to(ROOT)): imported for path in modules(room) if (imported := tops(path) & forbidden)}
    assert not wrong


def test_no_prints_or_exits_outside_the_command_line():
    for path in modules("phrasetool") + modules("moses_compat"):
        for node in nodes(path):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in ("print", "sys.exit", "exit", "os._exit"), f"{path}:{node.lineno}"


def test_no_module_has_a_catch_all_name():
    assert not [path for path in MODULES if re.search(r"util|helper|manager|misc|common", path.name)]


@pytest.mark.parametrize(
    "module",
    [
        "phrasetool.phrase_encoder.scoring", "phrasetool.phrase_encoder.start", "phrasetool.phrase_encoder.settings",
        "moses_compat.jobs.prune", "moses_compat.jobs.annotate",
    ],
)  # fmt: skip
def test_no_torch_is_loaded(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    outcome = subprocess.run([sys.executable, "-c", code], env=clean_environment(), check=False)
    assert outcome.returncode == 0


def canonical(distribution):
    return distribution.lower().replace("_", "-")


def test_the_base_installation_can_compile_every_kernel():
    """Otherwise kernels would be compiled a second time as soon as another package is installed."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base, optional = (
        {canonical(re.split(r"[\[<>=]", name)[0]) for name in names}
        for names in (declared["dependencies"], chain(*declared["optional-dependencies"].values()))
    )
    # The distribution scikit-learn, for example, is imported as sklearn.
    blocked = [
        package
        for package, distributions in packages_distributions().items()
        if {canonical(name) for name in distributions} <= optional - base - {"phrasetool"}
    ]
    assert {"torch", "pyarrow", "sklearn", "faiss", "kenlm"} <= set(blocked)
    modules = {
        name.partition(":")[0]
        for room in HOUSE.values()
        if (room / SIGNATURES).exists()
        for name, _ in signatures(room)
    }
    assert len(modules) > 40
    code = f"import sys; sys.modules.update(dict.fromkeys({blocked!r})); import {', '.join(sorted(modules))}"
    subprocess.run([sys.executable, "-c", code], env=clean_environment(), check=True)
