"""Frames of scores, compared with a naive computation of each number."""

import math
import random

import numpy as np
import pandas as pd
import pytest

from moses_compat.experiments.results import (
    FinishedRun,
    LadderRuns,
    Scoreboard,
    TunedRuns,
    annotation_frame,
    ladder_frame,
    pruning_frames,
)
from moses_compat.experiments.settings import PruningSystem, labels_of
from tests.small_experiment import naive_bleu

WORDS = list("abcdefgh")
SAMPLES = 41


def noisy(lines, share, seed):
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split()) for line in lines]


@pytest.fixture(scope="module")
def references():
    rng = random.Random(1)
    return {name: [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(size)]
            for name, size in (("dev", 20), ("one", 25), ("two", 15))}  # fmt: skip


def translations(references, share, seed=1):
    return {name: noisy(lines, share, seed) for name, lines in references.items()}


def with_all(texts):
    return {**texts, "ALL": texts["one"] + texts["two"]}


def naive_samples(hypothesis, reference):
    drawn = np.random.default_rng(12345).choice(len(reference), size=(SAMPLES, len(reference)), replace=True)
    return np.array([naive_bleu([hypothesis[i] for i in rows], [reference[i] for i in rows]) for rows in drawn])


def naive_p(one, other, real):
    differences = np.abs(one - other)
    return (np.sum(differences - differences.mean() > real) + 1) / (SAMPLES + 1)


@pytest.fixture(scope="module")
def runs(references):
    systems = [
        PruningSystem(),
        PruningSystem("semantic", "", "size", 0.1, "words", 10),
        PruningSystem("composition+semantic", "rank", "size", 0.1, "words", 10),
        PruningSystem("count", "", "size", 0.1, "words", 10),
        PruningSystem("random", "", "size", 0.1, "words", 10, 1),
        PruningSystem("count", "", "size", 0.5, "words", 10),
    ]
    shares = [0.1, 0.3, 0.2, 0.25, 0.05, 0.1]
    labels = labels_of(systems)
    return [FinishedRun(system, labels[system], 100 * (i + 1), 1000, translations(references, share, i), f"prune {i}")
            for i, (system, share) in enumerate(zip(systems, shares, strict=True))]  # fmt: skip


def test_pruning(references, runs):
    pruning, _ = pruning_frames(runs, Scoreboard(references, SAMPLES))
    assert list(pruning.columns) == [
        "system", "method", "combine", "semantic", "rule", "wanted", "protect", "keep_top", "seed", "entries", "share",
        "text", "bleu", "low", "high", "difference", "p", "worst", "best", "command",
    ]  # fmt: skip
    assert list(pruning.text[:4]) == ["one", "two", "ALL", "dev"]
    assert len(pruning) == 4 * len(runs)
    full = with_all(runs[0].translations)
    for run in runs:
        for text, lines in with_all(run.translations).items():
            row = pruning[(pruning.system == run.label) & (pruning.text == text)].iloc[0]
            reference = with_all(references)[text]
            bleu, base = naive_bleu(lines, reference), naive_bleu(full[text], reference)
            assert row.bleu == pytest.approx(bleu, abs=1e-9)
            assert row.difference == pytest.approx(bleu - base, abs=1e-9)
            samples = naive_samples(lines, reference)
            assert (row.low, row.high) == pytest.approx((np.sort(samples)[1], np.sort(samples)[-2]), abs=1e-9)
            if run is runs[0]:
                assert math.isnan(row.p)
                assert math.isnan(row.worst)
            else:
                differences = samples - naive_samples(full[text], reference)
                ends = np.sort(differences)[[1, -2]]
                assert (row.worst, row.best) == pytest.approx(tuple(ends), abs=1e-9)
                assert row.p == naive_p(samples, naive_samples(full[text], reference), abs(bleu - base))
            assert (row.entries, row.share, row.command) == (run.entries, run.entries / 1000, run.command)


def test_contests(references, runs):
    """The best systems on the development set are compared, except random ones; sizes that lack a side are left out."""
    _, contests = pruning_frames(runs, Scoreboard(references, SAMPLES))
    assert len(contests) == 1
    row = contests.iloc[0]
    assert (row.wanted, row.protect, row.without) == (0.1, "words", "count")
    dev = {run.label: naive_bleu(run.translations["dev"], references["dev"]) for run in runs[1:3]}
    best = max(runs[1:3], key=lambda run: dev[run.label])
    assert row.with_semantics == best.system.kind
    assert row.dev_with == pytest.approx(dev[best.label])
    reference = with_all(references)["ALL"]
    scores = [naive_bleu(with_all(run.translations)["ALL"], reference) for run in (best, runs[3])]
    assert (row.bleu_with, row.bleu_without) == pytest.approx(tuple(scores))
    assert row.difference == pytest.approx(scores[0] - scores[1])
    samples = [naive_samples(with_all(run.translations)["ALL"], reference) for run in (best, runs[3])]
    assert row.p == naive_p(*samples, abs(scores[0] - scores[1]))
    assert (row.worst, row.best) == pytest.approx(tuple(np.sort(samples[0] - samples[1])[[1, -2]]), abs=1e-9)


def test_without_the_full_table_there_is_nothing_to_compare_with(references, runs):
    with pytest.raises(ValueError, match="the run of the full table is missing"):
        pruning_frames(runs[1:], Scoreboard(references, SAMPLES))


def test_annotation(references):
    """Scores are means over tuning seeds; samples of the test draw sentences and seeds, the same for all systems."""
    shares = {"baseline": (0.3, 0.32, 0.28), "annotated n=50": (0.2, 0.22, 0.25)}
    runs = [TunedRuns(label, "semantic" if "n=" in label else "", 50 if "n=" in label else 0,
                      [translations(references, share, i) for i, share in enumerate(values)])
            for label, values in shares.items()]  # fmt: skip
    frame = annotation_frame(runs, Scoreboard(references, SAMPLES))
    assert len(frame) == 2 * 4
    for run in runs:
        for text in ("one", "two", "ALL", "dev"):
            row = frame[(frame.system == run.label) & (frame.text == text)].iloc[0]
            reference = with_all(references)[text]
            scores = [naive_bleu(with_all(each)[text], reference) for each in run.translations]
            base = [naive_bleu(with_all(each)[text], reference) for each in runs[0].translations]
            assert row.bleu == pytest.approx(np.mean(scores))
            assert row.deviation == pytest.approx(np.std(scores, ddof=1))
            assert row.difference == pytest.approx(np.mean(scores) - np.mean(base))
            dev = [naive_bleu(each["dev"], references["dev"]) for each in run.translations]
            assert row.dev_bleu == pytest.approx(np.mean(dev))
            assert row.tuning_seeds == 3
            if run is runs[0]:
                assert all(map(math.isnan, (row.low, row.high, row.p)))
                continue
            seeds = np.random.default_rng(777).integers(0, 3, (SAMPLES, 3))
            samples = []
            for tuned in runs:
                each = [naive_samples(with_all(texts)[text], reference) for texts in tuned.translations]
                samples.append(np.array([sum(each[s][i] for s in row) / 3 for i, row in enumerate(seeds)]))
            assert row.p == naive_p(*samples, abs(np.mean(scores) - np.mean(base)))
            ordered = np.sort(samples[1] - samples[0])
            assert (row.low, row.high) == pytest.approx((ordered[1], ordered[-2]), abs=1e-9)


def test_steps_are_compared_with_the_step_below_and_with_the_first(references):
    """Each pruned table is compared with the last full one above it, unless another step is named."""
    steps = {"table": (0.3, 1), "+ columns": (0.2, 1), "+ rerank": (0.1, 1), "all but rerank, 10 %": (0.22, 0.1),
             "all, 10 %": (0.15, 0.1), "all, 5 %": (0.4, 0.05)}  # fmt: skip
    named = {"all but rerank, 10 %": "+ columns"}
    runs = [LadderRuns(label, 100, share, [translations(references, noise, 7)], named.get(label))
            for label, (noise, share) in steps.items()]  # fmt: skip
    frame = ladder_frame(runs, Scoreboard(references, SAMPLES))
    assert len(frame) == 6 * 4
    below = {"+ columns": "table", "+ rerank": "+ columns", "all, 10 %": "+ rerank", "all, 5 %": "+ rerank", **named}
    for text, reference in with_all(references).items():
        lines = {run.label: with_all(run.translations[0])[text] for run in runs}
        bleu = {label: naive_bleu(hypothesis, reference) for label, hypothesis in lines.items()}
        samples = {label: naive_samples(hypothesis, reference) for label, hypothesis in lines.items()}
        rows = frame[frame.text == text].set_index("step")
        assert rows.loc["table", ["gain", "gain_low", "total", "total_p"]].isna().all()
        for label, previous in below.items():
            row = rows.loc[label]
            assert row.bleu == pytest.approx(bleu[label])
            for name, base in (("gain", previous), ("total", "table")):
                assert row[name] == pytest.approx(bleu[label] - bleu[base])
                differences = samples[label] - samples[base]
                assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(
                    tuple(np.percentile(differences, [2.5, 97.5]))
                )
                assert row[f"{name}_p"] == naive_p(samples[label], samples[base], abs(bleu[label] - bleu[base]))


def test_one_tuning_has_no_deviation(references):
    run = TunedRuns("baseline", "", 0, [translations(references, 0.2)])
    assert annotation_frame([run], Scoreboard(references, SAMPLES)).deviation.isna().all()


def test_frames_go_through_parquet(references, runs, tmp_path):
    pruning, contests = pruning_frames(runs, Scoreboard(references, SAMPLES))
    for frame in (pruning, contests):
        frame.to_parquet(tmp_path / "x.parquet", index=False)
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "x.parquet"), frame)
