import gzip
import math
from collections import Counter

import pytest

from moses_compat.engine.model import MosesModel
from tests import naive_decoder as naive
from tests.commands import read, run_inside
from tests.decoder_models import write_model
from tests.naive_decoder import Entry

WEIGHTS = {
    "Distortion": [0.3], "LM": [0.5], "WordPenalty": [-1.0], "PhrasePenalty": [0.2], "TranslationModel": [0.2] * 4,
}  # fmt: skip
# source, target, value of all four scores, counts c(t) c(s) c(s,t)
ENTRIES = [
    ("das", "the", 0.5, (10, 10, 5)),
    ("das", "that", 0.3, (10, 10, 3)),
    ("haus", "house", 0.8, (10, 10, 8)),
    ("haus", "home", 0.1, (10, 10, 1)),
    ("das haus", "the house", 0.9, (1, 1, 1)),
    ("ist", "is", 0.9, (10, 10, 9)),
    ("gr\xfcn", "green", 0.9, (10, 10, 9)),
    ("nicht", "", 0.2, (10, 10, 2)),
    ("nicht", "not", 0.7, (10, 10, 7)),
]
PAIRS = [
    ("das haus ist gr\xfcn", "the house is green"),
    ("das haus", "house the"),
    ("haus das", "home that"),
    ("das haus ist gr\xfcn", "green is the house"),
    ("das haus ist gr\xfcn 1984", "that house is green 1984"),
    # Not reached: no entry of the last word fits, no entry produces `yes`, a source word is left over; empty sides.
    ("das haus ist gr\xfcn", "the house is blue"),
    ("das haus", "the house yes"),
    ("das haus haus", "the house"),
    ("", "the"),
    ("", ""),
]


def entry(source, target, probability, counts):
    log = float(math.log(probability))
    return Entry(tuple(source.encode().split()), tuple(target.encode().split()), (log,) * 4, counts=counts)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Return the model, its ini, and the source and target files."""
    folder = tmp_path_factory.mktemp("forced")
    model = naive.Model([entry(*row) for row in ENTRIES], WEIGHTS, distortion_limit=6)
    # The language model is never opened.
    ini = write_model(model, folder / "model", "no-such.arpa")
    source, target = folder / "source", folder / "target"
    source.write_bytes("".join(s + "\n" for s, _ in PAIRS).encode())
    target.write_bytes("".join(t + "\n" for _, t in PAIRS).encode())
    return model, ini, source, target


def force(example, *options):
    _, ini, source, target = example
    return run_inside("force-decode", "--moses-ini", ini, "-q", source, target, *options)


def expected_pairs(model, leave_one_out=False):
    """Return the expected file of pairs, by naive best derivations, and the number of sentences that have one."""
    counts, reached = Counter(), 0
    for s, t in PAIRS:
        sentence, reference = s.encode().split(), t.encode().split()
        placed = naive.placements(model, sentence, reference)
        result = list(naive.forced_derivations(model, sentence, reference, placed))
        if not result or not sentence:
            continue
        reached += 1
        best = max(result, key=lambda d: naive.forced_score(model, d, placed, leave_one_out))
        counts.update((b" ".join(e.source), b" ".join(e.target)) for *_, e in best if not e.copy)
    return b"".join(sorted(b"%s ||| %s ||| %d\n" % (*pair, n) for pair, n in counts.items())), reached


@pytest.mark.parametrize("leave_one_out", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_used_pairs(example, tmp_path, leave_one_out, threads):
    plain, packed = tmp_path / "pairs", tmp_path / "pairs.gz"
    options = ["--threads", threads, *(["--leave-one-out"] if leave_one_out else [])]
    for out in (plain, packed):
        outcome = force(example, "-o", out, *options)
        assert (outcome.code, outcome.out, outcome.err) == (0, b"", "")
    expected, reached = expected_pairs(example[0], leave_one_out)
    assert reached == 5
    assert read(plain) == read(packed) == expected
    # With leave-one-out, a long phrase that occurs nowhere else is not used.
    assert (b"das haus ||| the house ||| " in expected) == (not leave_one_out)
    # The file is sorted, and the copied word 1984 is not a pair.
    lines = read(plain).split(b"\n")[:-1]
    assert lines == sorted(lines)
    assert b"1984" not in read(plain)


def test_unreached_sentences_are_reported(example, tmp_path):
    _, ini, source, target = example
    outcome = run_inside("force-decode", "--moses-ini", ini, source, target, "-o", tmp_path / "pairs")
    assert outcome.code == 0
    lines = [line.removeprefix("phrasetool: ") for line in outcome.err.splitlines()]
    assert lines.pop(0).startswith(f"{ini}: its paths are relative to {ini.parent}, because ")
    assert lines.pop(0) == "3.8 % of 26 tokens have no translation"
    assert lines[0] == "5 of 10 sentences decoded to their translation"
    assert sorted(lines[1:-1]) == [
        "  1 failed: a reference word is produced by no entry",
        "  1 failed: a source word has no entry that fits the reference",
        "  1 failed: no combination of entries covers both sides",
        "  2 failed: a side is empty",
    ]
    pairs = read(tmp_path / "pairs").split(b"\n")[:-1]
    uses = sum(int(line.rsplit(b" ", 1)[1]) for line in pairs)
    assert lines[-1] == f"{len(pairs)} distinct phrase pairs, used {uses} times, written to {tmp_path / 'pairs'}"
    # The most frequent reason comes first.
    numbers = [int(line.split()[0]) for line in lines[1:-1]]
    assert numbers == sorted(numbers, reverse=True)


def test_the_distortion_limit(example, tmp_path):
    _, ini, source, target = example
    outcome = run_inside(
        "force-decode", "--moses-ini", ini, source, target, "-o", tmp_path / "pairs", "--distortion-limit", 0
    )
    assert "3 of 10 sentences decoded" in outcome.err
    assert "2 failed: only beyond the distortion limit" in outcome.err
    hint = "hint: in 20% of the sentences, words move farther than the distortion limit of 0: a model with a larger one"
    assert hint in outcome.err
    changed = ini.parent / "changed.ini"
    changed.write_text(ini.read_text().replace("[distortion-limit]\n6", "[distortion-limit]\n0"))
    again = run_inside("force-decode", "--moses-ini", changed, source, target, "-o", tmp_path / "pairs")
    assert again.err.replace("changed.ini", "moses.ini") == outcome.err
    arguments = ("force-decode", "--moses-ini", changed, source, target, "-o", tmp_path / "x")
    unlimited = run_inside(*arguments, "--distortion-limit", -1)
    assert "5 of 10 sentences decoded" in unlimited.err
    assert "hint" not in unlimited.err


def test_partial_covers_add_pairs(example, tmp_path):
    force(example, "-o", tmp_path / "whole")
    force(example, "-o", tmp_path / "partial", "--partial")

    def counts(name):
        lines = read(tmp_path / name).split(b"\n")[:-1]
        return Counter({line.rsplit(b" ||| ", 1)[0]: int(line.rsplit(b" ||| ", 1)[1]) for line in lines})

    whole, partial = counts("whole"), counts("partial")
    assert whole <= partial
    # Of `the house is blue`, only `blue` cannot be produced; the rest is used.
    assert partial[b"ist ||| is"] == whole[b"ist ||| is"] + 1
    assert partial[b"gr\xc3\xbcn ||| green"] == whole[b"gr\xc3\xbcn ||| green"]


def test_training_reads_the_output(example, tmp_path):
    from moses_compat.corpora.training_pairs import read_training_pairs
    from moses_compat.files.streams import Input

    out = tmp_path / "pairs.gz"
    force(example, "-o", out)
    with Input(str(out)) as source:
        corpus = read_training_pairs(source)
    expected, _ = expected_pairs(example[0])
    assert len(corpus.counts) == expected.count(b"\n")
    assert corpus.counts.sum() == sum(int(line.rsplit(b" ", 1)[1]) for line in expected.split(b"\n")[:-1])


def test_another_table(example, tmp_path):
    table = tmp_path / "table"
    table.write_bytes(b"haus das ||| home that ||| 1 1 1 1\n")
    force(example, "-o", tmp_path / "pairs", "--table", table, "--force")
    assert read(tmp_path / "pairs") == b"haus das ||| home that ||| 1\n"
    table.write_bytes(b"haus das ||| nothing ||| 1 1 1 1\n")
    _, ini, *bitext = example
    outcome = run_inside(
        "force-decode", "--moses-ini", ini, *bitext, "-o", tmp_path / "none", "--table", table, "--force"
    )
    assert (outcome.code, (tmp_path / "none").exists()) == (0, True)
    assert f"{bitext[0]}: none of its {len(PAIRS)} sentences can be decoded to its translation (" in outcome.err


def test_invalid_input_is_refused_in_one_line(example, tmp_path):
    _, ini, source, _ = example
    out = tmp_path / "pairs"
    short = tmp_path / "short"
    short.write_bytes(b"the house is green\n")
    outcome = run_inside("force-decode", "--moses-ini", ini, "-q", source, short, "-o", out)
    assert outcome.code == 1
    assert outcome.message == f"phrasetool: {short}: has 1 lines, but {source} has 10"
    outcome = force(example, "-o", out, "--table", tmp_path / "none")
    assert "none: No such file" in outcome.message
    for name, table, message in [
        ("columns", b"das ||| the ||| 1 1\n", "columns:1: the entries have 2 scores, but the model expects 4"),
        ("negative", b"das ||| the ||| 1 1 1 -1\n", "negative:1: a score is negative"),
        ("alignment", b"das ||| the ||| 1 1 1 1 ||| x\n", "alignment:1: the alignment"),
    ]:
        (tmp_path / name).write_bytes(table)
        outcome = force(example, "-o", out, "--table", tmp_path / name)
        assert outcome.code == 1
        assert message in outcome.message
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"das ||| the ||| 1 1 1 1\n" * 1000)[:50])
    assert "end too early" in force(example, "-o", out, "--table", tmp_path / "cut.gz").message
    (tmp_path / "uncounted").write_bytes(b"das ||| the ||| 1 1 1 1 ||| 0-0\n")
    outcome = force(example, "-o", out, "--table", tmp_path / "uncounted", "--leave-one-out")
    assert outcome.code == 1
    assert "uncounted: leave-one-out needs" in outcome.message
    assert not out.exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_inputs_are_not_overwritten(example):
    _, ini, source, target = example
    for path in (ini, source, target, ini.parent / "table.gz"):
        before = path.read_bytes()
        assert "the output is the input" in force(example, "-o", path).message
        assert path.read_bytes() == before
    assert str(ini.parent / "table.gz") in MosesModel.read(str(ini)).paths


def test_wrong_usage(example):
    _, ini, source, target = example
    assert run_inside("force-decode", "--moses-ini", ini, source, target).code == 2
    assert run_inside("force-decode", "--moses-ini", ini, source, "-o", "x").code == 2
    assert force(example, "-o", "x", "--stack", "0").code == 2


def test_a_text_is_not_its_own_translation(example, tmp_path):
    _, ini, source, _ = example
    outcome = run_inside("force-decode", "--moses-ini", ini, source, source, "-o", tmp_path / "pairs")
    assert outcome.code == 1
    assert outcome.message == f"phrasetool: {source}: is also the source file; expected its translation"


def test_a_source_of_unknown_words(example, tmp_path):
    _, ini, source, target = example
    arguments = ("force-decode", "--moses-ini", ini, target, source, "-o", tmp_path / "pairs", "-q")
    assert f"{target}: 100.0 % of its 27 tokens" in run_inside(*arguments).message
    assert not (tmp_path / "pairs").exists()
    forced = run_inside(*arguments, "--force")
    assert forced.code == 0
    coverage, outcome = forced.err.splitlines()
    assert f"warning: {target}: 100.0 % of its 27 tokens" in coverage
    assert f"{target}: none of its {len(PAIRS)} sentences can be decoded to its translation" in outcome


def test_leave_one_out_of_a_repeated_word_uses_the_counts_of_the_other_sentences(tmp_path, monkeypatch):
    """`s ||| A` occurs twice in the first sentence pair and once in the second one; no other pair occurs in both."""
    monkeypatch.chdir(tmp_path)
    files = {"source": "s s\ns\n", "target": "A A\nA\n", "alignment": "0-0 1-1\n0-0\n", "text": "A A B\nA C\nB A\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for line in (
        "extract source target alignment -o table.gz",
        "lm text -o lm.arpa --order 2",
        "moses-ini --table table.gz --lm lm.arpa -o default.ini",
        "force-decode --moses-ini moses.ini source target --leave-one-out -o pairs",
    ):
        outcome = run_inside(*line.split())
        assert outcome.code == 0, outcome.err
        if line.startswith("moses-ini"):
            # Long phrases are preferred, unless their probabilities are lower.
            text = (tmp_path / "default.ini").read_text()
            assert "PhrasePenalty0= 0.2\n" in text
            (tmp_path / "moses.ini").write_text(text.replace("PhrasePenalty0= 0.2", "PhrasePenalty0= -0.2"))
    assert b"s ||| A ||| 3\n" in read(tmp_path / "pairs")
