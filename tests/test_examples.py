"""Scripts in `examples/`, except the tour, which is tested in tests/library."""

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


def test_generated_sentences_are_unique_and_parallel(toy_german):
    known = set()
    samples = toy_german.sentences(Random(1), 300, known, toy_german.KNOWN_THINGS)
    samples += toy_german.sentences(Random(1), 300, known)
    assert len({pair[0] for pair, _ in samples}) == 600 == len(known)
    words = list(itertools.chain(toy_german._PERSONS, toy_german._THINGS, toy_german._VERBS, toy_german._TIMES))
    for (german, english), part in samples:
        assert (" weil " in german) == (" because " in english)
        texts = [f" {german} ", f" {english} "]
        for word in words:
            # Each word occurs as often as its translation.
            assert len({text.count(f" {side} ") for text, side in zip(texts, word[:2], strict=True)}) == 1, word
        # The partial translation is a prefix of the full one, and clearly shorter.
        assert english.startswith(part[:-2])
        assert len(part.split()) <= 0.75 * len(english.split())
    unknown = {word[0] for word in toy_german._THINGS[toy_german.KNOWN_THINGS :]}
    has_unknown = [bool(unknown & set(pair[0].split())) for pair, _ in samples]
    assert not any(has_unknown[:300])
    assert sum(has_unknown[300:]) > 100


@pytest.mark.slow
@pytest.mark.skipif("PHRASETOOL_SLOW" not in os.environ, reason="takes two minutes: PHRASETOOL_SLOW=1")
# Thirty commands, one of which trains and three of which tune, take minutes on a busy machine.
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
        name: (int(pairs.replace(",", "")), int(correct.replace(",", "")))
        for name, pairs, correct in re.findall(
            r"^(mined|kept): ([\d,]+) pairs, ([\d,]+) of them right", outcome.stdout, re.M
        )
    }
    assert counts["mined"][1] >= 900
    assert counts["kept"][1] >= 0.95 * counts["mined"][1]
    dropped, dropped_correct = (before - after for before, after in zip(counts["mined"], counts["kept"], strict=True))
    assert dropped >= 50 > 5 * dropped_correct
    removed = re.search(r"removed ([\d,]+) of ([\d,]+) wrong pairs, and ([\d,]+) right ones", outcome.stdout).groups()
    assert [int(part.replace(",", "")) for part in removed] == [
        dropped - dropped_correct,
        counts["mined"][0] - counts["mined"][1],
        dropped_correct,
    ]
    assert len(re.findall(r"a phrase table of [\d,]+ entries", outcome.stdout)) == 3
    bleu = dict(re.findall(r"by-(\w+)/test\.en\D+([\d.]+) ", outcome.stdout.rpartition("BLEU, more is better")[2]))
    assert float(bleu["kept"]) > float(bleu["trusted"]) + 3
    assert float(bleu["kept"]) > float(bleu["mined"])
