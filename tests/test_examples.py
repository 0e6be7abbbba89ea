"""The scripts in `examples/` do what they say; the tour is tested beside the library."""

import itertools
import os
import re
import subprocess
import sys
from random import Random

import pytest

from tests.commands import clean_environment
from tests.test_documents import ROOT

MINING = ROOT / "examples" / "mining"


@pytest.fixture
def toy_german(monkeypatch):
    monkeypatch.syspath_prepend(str(MINING))
    import toy_german

    yield toy_german
    sys.modules.pop("toy_german")


def test_made_sentences_are_told_apart_and_in_step(toy_german):
    known = set()
    made = toy_german.sentences(Random(1), 300, known, toy_german.KNOWN_THINGS)
    made += toy_german.sentences(Random(1), 300, known)
    assert len({pair[0] for pair, _ in made}) == 600 == len(known)
    words = list(itertools.chain(toy_german._PERSONS, toy_german._THINGS, toy_german._VERBS, toy_german._TIMES))
    for (german, english), part in made:
        assert (" weil " in german) == (" because " in english)
        said = [f" {german} ", f" {english} "]
        for word in words:
            # Of a word in one language, as often in the other.
            assert len({text.count(f" {side} ") for text, side in zip(said, word[:2], strict=True)}) == 1, word
        # A part says nothing that the whole does not, and clearly less.
        assert english.startswith(part[:-2])
        assert len(part.split()) <= 0.75 * len(english.split())
    unknown = {word[0] for word in toy_german._THINGS[toy_german.KNOWN_THINGS :]}
    seen = [bool(unknown & set(pair[0].split())) for pair, _ in made]
    assert not any(seen[:300])
    assert sum(seen[300:]) > 100


@pytest.mark.slow
@pytest.mark.skipif("PHRASETOOL_SLOW" not in os.environ, reason="takes two minutes: PHRASETOOL_SLOW=1")
# Thirty commands, one of which trains and three of which tune: minutes, where something else runs beside them.
@pytest.mark.timeout(1500)
def test_mined_and_filtered_pairs_make_a_better_table(tmp_path):
    for package in ("torch", "eflomal", "sacrebleu"):
        pytest.importorskip(package, reason="an extra is not installed")
    outcome = subprocess.run(
        [sys.executable, "-W", "error", MINING / "mine.py", "--threads", "1"], cwd=tmp_path, text=True,
        env=clean_environment(OMP_NUM_THREADS="1"), capture_output=True, timeout=1400, check=False,
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stderr
    counts = {
        name: (int(pairs.replace(",", "")), int(right.replace(",", "")))
        for name, pairs, right in re.findall(
            r"^(mined|kept): ([\d,]+) pairs, ([\d,]+) of them right", outcome.stdout, re.M
        )
    }
    assert counts["mined"][1] >= 900
    assert counts["kept"][1] >= 0.95 * counts["mined"][1]
    gone, lost = (before - after for before, after in zip(counts["mined"], counts["kept"], strict=True))
    assert gone >= 50 > 5 * lost
    removed = re.search(r"removed ([\d,]+) of ([\d,]+) wrong pairs, and ([\d,]+) right ones", outcome.stdout).groups()
    assert [int(part.replace(",", "")) for part in removed] == [
        gone - lost,
        counts["mined"][0] - counts["mined"][1],
        lost,
    ]
    assert len(re.findall(r"a phrase table of [\d,]+ entries", outcome.stdout)) == 3
    by = dict(re.findall(r"by-(\w+)/test\.en\D+([\d.]+) ", outcome.stdout.rpartition("BLEU, more is better")[2]))
    assert float(by["kept"]) > float(by["trusted"]) + 3
    assert float(by["kept"]) > float(by["mined"])
