"""What the console script settles before anything is imported."""

from __future__ import annotations

import os

import pytest

import phrasetool_cli.console as console

VARIABLES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["20000", None]),
        ({"GOMP_SPINCOUNT": "5"}, ["5", None]),
        ({"OMP_WAIT_POLICY": "active"}, [None, "active"]),
    ],
)
def test_threads_of_openmp_do_not_wait_long_unless_the_user_says_so(
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
