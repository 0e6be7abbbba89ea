"""Variants of a test within one test case."""

import os

import pytest

from tests.variants import for_each


def test_variants_run_and_those_that_fail_are_named():
    seen = []

    @for_each(("number", "word"), [(1, "a"), (2, "b"), (3, "c")])
    def check(number, word, more):
        seen.append((number, word, more))
        assert number == 2

    with pytest.raises(ExceptionGroup, match="2 of the first 3 variants fail") as caught:
        check(more=9)
    assert seen == [(1, "a", 9), (2, "b", 9), (3, "c", 9)]
    assert [one.__notes__ for one in caught.value.exceptions] == [
        ["variant: {'number': 1, 'word': 'a'}"],
        ["variant: {'number': 3, 'word': 'c'}"],
    ]


def test_few_failures_are_enough():
    seen = []

    @for_each("number", range(9))
    def check(number):
        seen.append(number)
        assert number < 2

    with pytest.raises(ExceptionGroup, match="3 of the first 5 variants fail"):
        check()
    assert seen == [0, 1, 2, 3, 4]


def test_one_that_fails_is_raised_as_it_is():
    @for_each("number", {"good": 1, "skipped": 2, "bad": 3})
    def check(number):
        if number == 2:
            pytest.skip("not here")
        assert number == 1

    with pytest.raises(AssertionError) as caught:
        check()
    assert caught.value.__notes__ == ["variant: bad"]


def test_it_is_skipped_if_all_variants_are():
    @for_each("reason", ["one", "other"])
    def check(reason):
        pytest.skip(reason)

    with pytest.raises(pytest.skip.Exception, match="one"):
        check()
    with pytest.raises(ValueError, match="without variants"):
        for_each("number", [])


PLACES = []


@for_each("number", [1, 2])
@for_each("other", [3, 4])
def test_each_has_a_folder_and_changes_of_its_own(number, other, tmp_path, monkeypatch):
    assert os.environ.get("PHRASETOOL_VARIANT") is None
    monkeypatch.setenv("PHRASETOOL_VARIANT", str(number))
    assert list(tmp_path.iterdir()) == []
    PLACES.append(tmp_path)
    assert len(set(PLACES)) == len(PLACES) == (number - 1) * 2 + other - 2
