"""Variants of a test within one test case."""

import os

import pytest

from tests.variants import for_each


def test_failing_variants_are_named():
    calls = []

    @for_each(("number", "word"), [(1, "a"), (2, "b"), (3, "c")])
    def check(number, word, more):
        calls.append((number, word, more))
        assert number == 2

    with pytest.raises(ExceptionGroup, match="2 of the first 3 variants fail") as caught:
        check(more=9)
    assert calls == [(1, "a", 9), (2, "b", 9), (3, "c", 9)]
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["variant: {'number': 1, 'word': 'a'}"],
        ["variant: {'number': 3, 'word': 'c'}"],
    ]


def test_variants_stop_after_three_failures():
    calls = []

    @for_each("number", range(9))
    def check(number):
        calls.append(number)
        assert number < 2

    with pytest.raises(ExceptionGroup, match="3 of the first 5 variants fail"):
        check()
    assert calls == [0, 1, 2, 3, 4]


def test_a_single_failure_is_raised_unchanged():
    @for_each("number", {"good": 1, "skipped": 2, "bad": 3})
    def check(number):
        if number == 2:
            pytest.skip("not here")
        assert number == 1

    with pytest.raises(AssertionError) as caught:
        check()
    assert caught.value.__notes__ == ["variant: bad"]


def test_a_test_is_skipped_if_all_variants_are():
    @for_each("reason", ["one", "other"])
    def check(reason):
        pytest.skip(reason)

    with pytest.raises(pytest.skip.Exception, match="one"):
        check()
    with pytest.raises(ValueError, match="without variants"):
        for_each("number", [])


WORD_POSITIONS = []


@for_each("number", [1, 2])
@for_each("other", [3, 4])
def test_variants_have_separate_folders_and_patches(number, other, tmp_path, monkeypatch):
    assert os.environ.get("PHRASETOOL_VARIANT") is None
    monkeypatch.setenv("PHRASETOOL_VARIANT", str(number))
    assert list(tmp_path.iterdir()) == []
    WORD_POSITIONS.append(tmp_path)
    assert len(set(WORD_POSITIONS)) == len(WORD_POSITIONS) == (number - 1) * 2 + other - 2
