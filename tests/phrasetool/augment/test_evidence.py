"""Entries of single words."""

import pytest

from phrasetool.augment.evidence import MOST_TARGETS, WordEntries, WordEntry


def test_entries_are_sorted_by_probability_and_limited():
    many = [WordEntry(f"t{i:02}", (1.0, 1.0, 0.01 * (i % 7), 1.0)) for i in range(MOST_TARGETS + 5)]
    entries = WordEntries({"b": many, "a": many[:2]}, {"a": 3})
    result = [(entry.probability, entry.target) for entry in entries["b"]]
    assert result == sorted(result, key=lambda target: (-target[0], target[1]))
    assert len(result) == MOST_TARGETS
    assert (entries.count("a"), entries.count("b"), entries.ordered, len(entries)) == (3, 0, ["a", "b"], 2)


def test_lexical_targets_have_letters_and_share_all_probability():
    entries = WordEntries(
        {"a": [WordEntry(t, (0.1, 0.2, p, 0.4)) for t, p in ((",", 0.5), ("x", 0.3), ("2", 0.1))]}, {}
    )
    result = entries.lexical("a")
    assert [entry.target for entry in result] == ["x", "2"]
    assert [entry.probability for entry in result] == pytest.approx([0.75, 0.25])
    assert result[0].scores[:2] == (0.1, 0.2)
    assert WordEntries({"a": [WordEntry("x", (0, 0, 0, 0))]}, {}).lexical("a") == []
