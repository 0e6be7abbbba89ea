"""Output lines are byte-identical to input lines, except for added columns."""

import gzip
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.phrase_encoder.kinds import Rae
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.vocabulary import UNKNOWN_WORD, Vocabulary
from tests import naive
from tests.commands import read, run_inside, write
from tests.conftest import random_parameters
from tests.pairwise import in_turn
from tests.tables import TABLES
from tests.variants import for_each

# File endings and options; all must give the same output.
WAYS = [
    ("", ("--threads", 1, "--block-bytes", 1 << 21)),
    (".gz", ("--threads", 2, "--block-bytes", 512)),
    (".gz", ("--threads", 1, "--block-bytes", 4096)),
    ("", ("--threads", 2, "--block-bytes", 1)),
]


@st.composite
def tables_with_oddities(draw):
    """Draw tables with random fields, spaces and line ends, and a few malformed lines."""
    sources = st.sampled_from(
        [b"das", b"das haus", b"das  haus ", b" das", b"ist", b"gr\xfcn|ADJ", b"&apos;s", b"qq", b"[X]"]
    )
    targets = st.sampled_from(
        [b"the", b"the house", b"", b" the\thouse", b"is|V", b"&amp;lt;", b"zz", b"green not", b"[X]"]
    )
    scores = st.sampled_from([b"0.5 1", b" 1e-5  2.718 ", b".5\t5.", b"0 -1", b"inf 1"])
    rest = st.sampled_from(
        [b"", b"|||", b"||| 0-0 |||", b" ||| 0-0 ||| 3 2 1 ||| |||", b"||| ||| ||| a 1 ||| {{X 1}} ||| 8 ||| 9"]
    )
    wrong = st.sampled_from(
        [b"", b" ", b"das", b"das ||| the", b"ist ||| is ||| nan 1", b"das ||| x ||| 1", b"das ||| x ||| y z"]
    )
    separator = st.sampled_from([b" ||| ", b" ||| ", b"|||", b"\t|||  "])

    def line():
        cut = draw(separator)
        return draw(sources) + cut + draw(targets) + cut + draw(scores) + draw(rest)

    lines = [draw(wrong) if draw(st.integers(0, 7)) == 0 else line() for _ in range(draw(st.integers(0, 12)))]
    # The first well-formed line sets the number of scores.
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    text = b"".join(line + end for line in [b"das ||| a ||| 1 1", *lines])
    return text if draw(st.booleans()) else text.removesuffix(end)


def prune(table, model_folder, *options):
    return run_inside("prune", table, "-m", model_folder, "-q", "--allow-empty", *options)


@for_each(("name", "ways"), in_turn(sorted(TABLES), WAYS, 2))
def test_prune_of_moses_tables(name, model_folder, tmp_path, ways):
    table, ((ending, options), (other_ending, other_options)) = TABLES[name], ways
    source, out, rejected_file = (
        write(tmp_path / f"in{ending}", table),
        tmp_path / f"out{ending}",
        tmp_path / f"gone{ending}",
    )
    rule = ("-t", "0.3", "--keep-top", "1")
    assert prune(source, model_folder, *rule, *options, "-o", out, "--rejected", rejected_file).code == 0
    kept, rejected, lines = (
        naive.split_lines(read(out)),
        naive.split_lines(read(rejected_file)),
        naive.split_lines(table),
    )
    assert naive.is_ordered_subset(kept, lines)
    assert naive.is_ordered_subset(rejected, lines)
    assert sorted(kept + rejected) == sorted(lines)
    # A last line without a line feed remains the last one, so no lines are joined.
    assert read(out).count(b"\n") + read(rejected_file).count(b"\n") == table.count(b"\n")
    command = ("prune", "-m", model_folder, "-q", "--allow-empty", *rule, *other_options)
    piped = run_inside(*command, stdin=write(tmp_path / f"piped{other_ending}", table).read_bytes())
    assert (piped.code, piped.out) == (0, read(out))


@for_each(
    ("name", "rules"),
    in_turn(sorted(TABLES), [("-t", "-1"), ("-t", "1", "--keep-top", "100000"), ("--target-size", "1")], 2),
)
def test_keeping_everything_gives_the_same_bytes(name, model_folder, tmp_path, rules):
    source, out = write(tmp_path / "t", TABLES[name]), tmp_path / "o"
    for options in rules:
        assert prune(source, model_folder, *options, "-o", out).code == 0
        assert out.read_bytes() == TABLES[name], options


@for_each(("name", "ways"), in_turn(sorted(TABLES), [("t", 1), ("t.gz", 2)], 1))
def test_parquet_and_back(name, tmp_path, ways):
    table, ((file, threads),) = TABLES[name], ways
    source, packed, back = write(tmp_path / file, table), tmp_path / "t.parquet", tmp_path / "back.gz"
    assert run_inside("convert", source, "-o", packed, "-q", "--threads", threads).code == 0
    assert run_inside("convert", packed, "-o", back, "-q", "--threads", threads).code == 0
    assert read(back) == table


@for_each("table", TABLES)
def test_annotated_and_pruned_tables_go_to_parquet_and_back(table, model_folder, tmp_path):
    source, packed = write(tmp_path / "t", table), tmp_path / "t.parquet"
    for command in (("annotate",), ("prune", "-t", "0.3", "--keep-top", "1")):
        outcome = run_inside(*command, source, "-m", model_folder, "-q", "--allow-empty", "-o", tmp_path / "u")
        assert outcome.code == 0
        assert run_inside("convert", tmp_path / "u", "-o", packed, "-q").code == 0
        assert run_inside("convert", packed, "-o", "-", "-q").out == (tmp_path / "u").read_bytes()


def test_some_lines_are_removed(model_folder, tmp_path):
    # The tests above would also pass if nothing were ever removed.
    kept = prune(write(tmp_path / "t", TABLES["seven fields"]), model_folder, "-t", "0.3", "--keep-top", "1").out
    assert 0 < len(naive.split_lines(kept)) < len(naive.split_lines(TABLES["seven fields"]))


@settings(max_examples=60)
@given(tables_with_oddities(), st.sampled_from([1, 100, 1 << 21]), st.sampled_from(["keep", "skip"]))
def test_prune_of_random_tables(model_folder, workspace, table, size, on_error):
    source, out, rejected_file = (
        write(workspace / "promise-in", table),
        workspace / "promise-out",
        workspace / "promise-gone",
    )
    outcome = prune(
        source,
        model_folder,
        "-t",
        "0.2",
        "--keep-top",
        "1",
        "--block-bytes",
        size,
        "--on-error",
        on_error,
        "-o",
        out,
        "--rejected",
        rejected_file,
    )
    assert outcome.code == 0
    lines = naive.split_lines(table)
    parsed = naive.parse_table(table, naive.first_score_count(table))[0]
    expected = [line for line, entry in zip(lines, parsed, strict=True) if on_error == "keep" or entry.fault == "ok"]
    kept, rejected = naive.split_lines(out.read_bytes()), naive.split_lines(rejected_file.read_bytes())
    assert naive.is_ordered_subset(kept, expected)
    assert sorted(kept + rejected) == sorted(expected)


@pytest.mark.requires_reference
def test_real_table(reference, tmp_path):
    with gzip.open(reference / "phrase-table.gz") as file:
        table = b"".join(file.readline() for _ in range(20_000))
    vocabularies, parameters = [], []
    for side in (0, 1):
        word_counts = Counter(
            naive.unescape(word) for line in table.splitlines() for word in line.split(b"|||")[side].split()
        )
        # Rare words are unknown, as to a trained model.
        words = [word for word, count in word_counts.items() if count > 3]
        vocabularies.append(Vocabulary([UNKNOWN_WORD, *words]))
        parameters.append(random_parameters(len(words) + 1, 16, side))
    BilingualModel(*vocabularies, *parameters, Rae()).save(tmp_path / "model")
    source, out = write(tmp_path / "t.gz", table), tmp_path / "o.gz"
    assert run_inside("annotate", source, "-m", tmp_path / "model", "-o", out, "-q", "--force").code == 0
    assert naive.cut_columns(read(out), 2) == table
    rejected_file = tmp_path / "gone"
    pruned = prune(source, tmp_path / "model", "--force", "-t", "0.3", "--keep-top", "1", "--rejected", rejected_file)
    assert pruned.code == 0
    kept, lines = naive.split_lines(pruned.out), naive.split_lines(table)
    assert 2000 < len(kept) < 19_000
    assert naive.is_ordered_subset(kept, lines)
    assert Counter(kept) + Counter(naive.split_lines(read(rejected_file))) == Counter(lines)
    # No source is lost.
    assert {line.split(b" ||| ")[0] for line in kept} == {line.split(b" ||| ")[0] for line in lines}
