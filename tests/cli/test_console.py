"""What the console script settles before anything is imported."""

from __future__ import annotations

import os

import pytest

import phrasetool_cli.console as console

VARIABLES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OPENBLAS_THREAD_TIMEOUT")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["20000", None, "20"]),
        ({"GOMP_SPINCOUNT": "5"}, ["5", None, "20"]),
        ({"OMP_WAIT_POLICY": "active", "OPENBLAS_THREAD_TIMEOUT": "9"}, [None, "active", "9"]),
    ],
)
def test_threads_of_libraries_do_not_wait_long_unless_the_user_says_so(
    given: dict[str, str], expected: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the call sets is taken back: `setenv` remembers what there was.
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    console.spin_briefly()
    assert [os.environ.get(name) for name in VARIABLES] == expected
