from importlib.metadata import PackageNotFoundError

import pytest

from phrasetool import __version__
from phrasetool_cli.command import PACKAGES, version_signature
from tests.commands import run_inside


def test_signature_names_all_versions_that_results_depend_on():
    import numpy

    first, *rest = version_signature().split("|")
    assert first == f"phrasetool {__version__}"
    result = dict(part.split(":") for part in rest)
    assert list(result) == ["python", *PACKAGES, "system"]
    assert result["numpy"] == numpy.__version__
    assert all(result.values())


def test_a_missing_package(monkeypatch):
    def version(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", version)
    assert "|torch:none|" in version_signature()


@pytest.mark.parametrize("arguments", [("--version",), ("--version", "prune", "--nonsense")], ids=" ".join)
def test_version_is_one_line_and_comes_first(arguments):
    outcome = run_inside(*arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.decode() == version_signature() + "\n"
