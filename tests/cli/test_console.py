"""Settings that the console script makes before it imports anything."""

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
def test_library_threads_spin_briefly_unless_the_user_sets_a_limit(
    given: dict[str, str], expected: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # `setenv` records the original values, so that changes by the call are undone after the test.
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    console.spin_briefly()
    assert [os.environ.get(name) for name in VARIABLES] == expected
