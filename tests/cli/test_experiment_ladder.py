"""`phrasetool experiment` with a cumulative ablation (`[ladder]`), in a tiny language with inflected words."""

import gzip
import json
import random
import shlex

import pandas as pd
import pytest

from tests.cli.small_translator import WORDS, sentences
from tests.commands import read, run_inside, write
from tests.neural_models import random_model
from tests.small_experiment import INI, SECOND_TEST, TEXTS, naive_bleu

CONFIG = f"""\
output = "out"
samples = 50
[moses]
ini = "moses.ini"
{TEXTS}{SECOND_TEST}[search]
stack = 50
pop_limit = 50
[ladder]
columns = "kneser-ney"
rerank = ["translator"]
sizes = [0.5]
method = "count"
tuning_seeds = 1
iterations = 1
"""
# Word -> inflected form, which the table lacks.
INFLECTED = {"hund": "hunde", "mann": "manne", "frau": "frauen"}
STEPS = ["table", "+ columns", "+ augment", "+ rerank", "all but rerank, 50 %", "all, 50 %"]


def write_table(path):
    """Write a table of words and word pairs, with rare wrong translations; return the number of entries."""
    rng, joint = random.Random(3), {}
    words = [word for word in WORDS if word != "&apos;s"]
    for first in words:
        joint[first, WORDS[first]] = rng.randint(20, 30)
        joint[first, WORDS[rng.choice(words)]] = rng.randint(1, 3)
        for second in words[:5]:
            joint[f"{first} {second}", f"{WORDS[first]} {WORDS[second]}"] = rng.randint(1, 4)
    sources, targets = ({}, {})
    for (source, target), count in joint.items():
        sources[source] = sources.get(source, 0) + count
        targets[target] = targets.get(target, 0) + count
    lines = []
    for (source, target), count in joint.items():
        scores = f"{count / targets[target]:.4f} 0.5 {count / sources[source]:.4f} 0.5"
        points = " ".join(f"{i}-{i}" for i in range(len(source.split())))
        counts = f"{targets[target]} {sources[source]} {count}"
        lines.append(f"{source} ||| {target} ||| {scores} ||| {points} ||| {counts}\n".encode())
    path.write_bytes(gzip.compress(b"".join(sorted(lines)), 1, mtime=0))
    return len(lines)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ladder")
    write_table(folder / "table.gz")
    for seed, (name, count) in enumerate({"dev": 20, "one": 25, "two": 15}.items()):
        source, target = sentences(count, seed)
        source = [" ".join(INFLECTED.get(word, word) for word in line.split()) for line in source]
        for side, lines in (("src", source), ("trg", target)):
            write(folder / f"{name}.{side}", "".join(f"{line}\n" for line in lines).encode())
    write(folder / "text", "".join(f"{line}\n" for line in sentences(200, 9)[1]).encode())
    assert (
        run_inside("lm", folder / "text", "--order", 3, "--estimator", "built-in", "-o", folder / "lm.arpa").code == 0
    )
    write(folder / "moses.ini", INI.encode())
    random_model([w.encode() for w in WORDS], [w.encode() for w in WORDS.values()]).save(folder / "translator")
    config = write(folder / "experiment.toml", CONFIG.encode())
    outcome = run_inside("experiment", config, "--threads", 2, "--force")
    assert outcome.code == 0, outcome.err
    return folder


def test_a_translator_of_other_languages_is_refused_first(finished, tmp_path):
    texts = [f"{text}.{side}" for text in ("dev", "one", "two") for side in ("src", "trg")]
    for name in ("experiment.toml", "table.gz", "moses.ini", "lm.arpa", *texts):
        write(tmp_path / name, (finished / name).read_bytes())
    random_model([b"quite", b"others"], [b"than", b"these"]).save(tmp_path / "translator")
    outcome = run_inside("experiment", tmp_path / "experiment.toml", "-q")
    assert outcome.code == 1
    assert "translator: does not translate between" in outcome.message
    assert not (tmp_path / "out").exists()


def frame(folder):
    return pd.read_parquet(folder / "out" / "ladder.parquet")


def test_each_step_is_written_tuned_and_translated(finished):
    result = frame(finished)
    assert list(dict.fromkeys(result.step)) == STEPS
    assert set(result.text) == {"one", "two", "ALL"}
    entries = result[result.text == "ALL"].set_index("step").entries
    lines = {
        name: read(finished / f"out/build/ladder-{name}.gz").splitlines() for name in ("columns", "all", "pruned-0.5")
    }
    assert [len(rows) for rows in lines.values()] == [entries[STEPS[i]] for i in (1, 2, 5)]
    assert entries["+ augment"] == entries["+ rerank"] >= entries["table"] + len(INFLECTED)
    assert entries["all, 50 %"] == entries["all but rerank, 50 %"] == entries["+ augment"] // 2
    # Two columns, and an indicator feature for each source of evidence.
    assert {len(row.split(b" ||| ")[2].split()) for row in lines["columns"]} == {4 + 2}
    assert {len(row.split(b" ||| ")[2].split()) for row in lines["all"]} == {4 + 4 + 2}
    # The missing entries of inflected words are the table's main weakness.
    assert result[(result.step == "+ augment") & (result.text == "ALL")].gain.item() > 5


@pytest.mark.parametrize(
    ("step", "stem"), [("table", "table-1.tests"), ("+ rerank", "all-1.reranked"),
                       ("all but rerank, 50 %", "pruned-0.5-1.tests"), ("all, 50 %", "pruned-0.5-1.reranked")]
)  # fmt: skip
def test_bleu_is_that_of_the_translation_files(finished, step, stem):
    result = frame(finished).query("step == @step").set_index("text")
    lines = (finished / "out/build" / f"ladder-{stem}").read_text().splitlines()
    for text, part in (("one", lines[:25]), ("two", lines[25:])):
        expected = naive_bleu(part, (finished / f"{text}.trg").read_text().splitlines())
        assert result.bleu[text] == pytest.approx(expected, abs=1e-6)


def test_finished_work_is_not_repeated(finished):
    before = frame(finished)
    outcome = run_inside("experiment", finished / "experiment.toml", "--threads", 1, "--force")
    assert outcome.code == 0
    assert "ladder-" not in outcome.err
    pd.testing.assert_frame_equal(frame(finished), before)
    facts = json.loads((finished / "out/experiment.json").read_text())
    command = shlex.split(facts["commands"]["ladder-table-1-tests"])
    command[-1] = str(finished / "by-hand")
    assert run_inside(*command[1:]).code == 0
    assert read(finished / "by-hand") == read(finished / "out/build/ladder-table-1.tests")
    report = (finished / "out/report.md").read_text()
    assert "All steps together **add** +" in report
    assert all(f"| {step} |" in report for step in STEPS)
