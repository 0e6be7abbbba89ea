"""Installation of the wheel with only its base dependencies: without the checkout, PyTorch or a compiler."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.commands import clean_environment
from tests.test_tutorial import FRESH

ROOT = Path(__file__).parent.parent
MOST_MEGABYTES = 400
BASE = {
    "click", "deflate", "isal", "numba", "llvmlite", "numpy", "phrasetool", "rapidfuzz", "safetensors", "sentencepiece",
    "tqdm",
}  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not FRESH, reason="installs everything anew: PHRASETOOL_FRESH_INSTALL=1 and a network"),
]


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, **options).stdout


def tracked():
    """Return the relative paths of the tracked files of the checkout."""
    return [line for line in run("git", "ls-files", cwd=ROOT).splitlines() if (ROOT / line).is_file()]


def copied(folder):
    """Copy the checkout, because builds leave files behind; return the copy."""
    source = folder / "source"
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    return source


def wheel(folder, python, source=None, **environment):
    """Build a wheel from a source folder or archive, by default from a copy of the checkout."""
    source = source or copied(folder)
    isolated = [] if environment else ["--no-deps"]
    extra = ["--no-build-isolation", "--no-deps"] if environment else isolated
    run(python, "-m", "pip", "wheel", "-q", *extra, "-w", folder, source, env=clean_environment(**environment))
    (result,) = folder.glob("*.whl")
    return result


def install(folder, python, made):
    run(python, "-m", "venv", folder / "venv")
    run(folder / "venv/bin/pip", "install", "-q", "-c", ROOT / "constraints.txt", made)
    return folder / "venv/bin"


def warm_up(binaries, folder, **environment):
    """Run commands with the bundled demo model; by default, nothing else is on the PATH."""
    inherited = {
        name: value
        for name, value in clean_environment().items()
        if not name.startswith(("PYTHON", "PHRASETOOL", "PATH"))
    }
    environment = {**inherited, "PATH": str(binaries), "HOME": str(folder), **environment}

    def phrasetool(*words):
        outcome = subprocess.run(
            [binaries / "phrasetool", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        return outcome.returncode, outcome.stderr

    assert phrasetool("demo", "--files", "demo") == (0, "")
    table, model = "demo/engine/phrase-table.gz", ["-m", "demo/model"]
    for words in (
        ["annotate", table, *model, "-o", "annotated.gz"],
        ["prune", "--threshold", "0.7", table, *model, "-o", "small.gz"],
        ["prune", "--target-size", "30%", table, "--protect", "words", *model, "-o", "third.gz"],
        ["prune", "--method", "count", "--target-size", "30%", table, "-o", "counted.gz"],
        ["decode", "--moses-ini", "demo/engine/moses.ini", "demo/engine/test.zh", "-o", "out"],
    ):
        code, errors = phrasetool(*words)
        assert code == 0, errors
        assert "compiling" not in errors
        assert (folder / words[-1]).stat().st_size > 1000
    code, errors = phrasetool("train", table)
    assert (code, errors) == (
        1,
        "phrasetool: error: this needs torch, which is not installed: pip install 'phrasetool[train]'\n",
    )
    code, errors = phrasetool("prune", "-t", "0.7", table, *model, "--similarities", "s.parquet", "-o", "no.gz", "-q")
    assert (code, errors) == (
        1, "phrasetool: error: this needs pyarrow, which is not installed: pip install 'phrasetool[parquet]'\n",
    )  # fmt: skip
    assert not (folder / "no.gz").exists()


def test_a_wheel_with_compiled_kernels_installs_only_the_base(tmp_path):
    binaries = install(tmp_path, sys.executable, wheel(tmp_path, sys.executable, PHRASETOOL_COMPILE="1"))
    packages = {line.split("==")[0] for line in run(binaries / "pip", "freeze").splitlines()}
    assert {name.split(" ")[0] for name in packages} <= BASE
    megabytes = sum(path.stat().st_size for path in tmp_path.joinpath("venv").rglob("*") if path.is_file()) / 1e6
    assert megabytes <= MOST_MEGABYTES
    warm_up(binaries, tmp_path, PHRASETOOL_KERNELS="ahead")


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_a_wheel_for_every_platform(tmp_path, version):
    candidates = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    working = [
        python for python in candidates
        if python and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    ]  # fmt: skip
    if not working:
        pytest.skip(f"no Python {version} here")
    binaries = install(tmp_path, working[0], wheel(tmp_path, working[0]))
    # The run compiles kernels; it announces that only if PHRASETOOL_KERNELS does not request it.
    warm_up(binaries, tmp_path, PHRASETOOL_KERNELS="numba", PATH=f"{binaries}{os.pathsep}/bin")


def test_the_source_archive_is_complete_and_builds_a_wheel(tmp_path):
    source = copied(tmp_path)
    # Files that runs leave in a checkout are not packed.
    for stray in ("phrasetool/_kernels.so", "moses_compat/__pycache__/blocks.pyc"):
        (source / stray).parent.mkdir(exist_ok=True)
        (source / stray).write_bytes(b"left")
    run(sys.executable, "setup.py", "-q", "sdist", "-d", tmp_path, cwd=source, env=clean_environment())
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as members:
        names = {name.partition("/")[2] for name in (member.name for member in members if member.isfile())}
    generated = {name for name in names if name in ("PKG-INFO", "setup.cfg") or ".egg-info/" in name}
    expected = {name for name in tracked() if not name.startswith(".")}
    assert names - generated == expected
    binaries = install(tmp_path, sys.executable, wheel(tmp_path, sys.executable, archive))
    warm_up(binaries, tmp_path, PHRASETOOL_KERNELS="numba", PATH=f"{binaries}{os.pathsep}/bin")
