import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.lines.insert_scores import scale_similarities
from phrasetool.phrase_encoder.kinds import Rae
from phrasetool.phrase_encoder.model import BilingualModel
from tests import naive
from tests.commands import read, run_inside, write
from tests.conftest import SOURCE_WORDS, TARGET_WORDS, random_parameters
from tests.pairwise import in_turn, pairwise
from tests.tables import MALFORMED, MALFORMED_LINES, TABLES
from tests.test_promise import WAYS, tables_with_oddities
from tests.variants import for_each


def annotate(table, model_folder, *options):
    return run_inside("annotate", table, "-m", model_folder, "-q", *options)


@for_each(("name", "ways"), in_turn(sorted(TABLES), pairwise(WAYS, [True, False]), 2))
def test_cutting_the_columns_gives_the_input(name, model_folder, tmp_path, ways):
    table, outputs = TABLES[name], []
    for (ending, options), piped in ways:
        source, out = write(tmp_path / f"in{ending}", table), tmp_path / f"out{ending}"
        if piped:
            command = ("annotate", "-", "-m", model_folder, "-q", "--allow-empty", *options)
            outcome = run_inside(*command, stdin=source.read_bytes())
            outputs.append(outcome.out)
        else:
            outcome = annotate(source, model_folder, "-o", out, "--allow-empty", *options)
            outputs.append(read(out))
        assert outcome.code == 0
    annotated, repeated = outputs
    assert annotated == repeated
    assert naive.cut_columns(annotated, 2) == table
    assert annotated.count(b"\n") == table.count(b"\n")
    if table:
        assert annotated != table


@settings(max_examples=60)
@given(tables_with_oddities(), st.sampled_from([1, 64, 512, 1 << 21]), st.sampled_from(["exp", "probability", "raw"]))
def test_cutting_random_tables(model_folder, workspace, table, size, scale):
    source, out = write(workspace / "annotate-in", table), workspace / "annotate-out"
    outcome = annotate(source, model_folder, "-o", out, "--block-bytes", size, "--on-error", "keep", "--scale", scale)
    assert outcome.code == 0
    annotated = out.read_bytes()
    expected = naive.first_score_count(table)
    valid = [line.fault == "ok" for line in naive.parse_table(table, expected)[0]]
    before, after = naive.split_lines(table), naive.split_lines(annotated)
    assert len(before) == len(after) == len(valid)
    for is_valid, old, new in zip(valid, before, after, strict=True):
        assert (naive.cut_columns(new, 2) if is_valid else new) == old
        assert not is_valid or new != old


def test_columns_are_the_similarities(model, model_folder, tmp_path):
    table = TABLES["seven fields"]
    source = write(tmp_path / "t", table)
    for scale in ("exp", "probability", "raw"):
        annotated = annotate(source, model_folder, "-o", "-", "--scale", scale).out
        for line, new in zip(naive.parse_table(table)[0], naive.split_lines(annotated), strict=True):
            pair = naive.word_ids(line.source, SOURCE_WORDS), naive.word_ids(line.target, TARGET_WORDS)
            if max(map(len, pair)) > 2:
                continue
            similarities = np.array(naive.similarities(*pair, model))
            written = [float(score) for score in new.split(b"|||")[2].split()[-2:]]
            np.testing.assert_allclose(written, scale_similarities(similarities, scale), atol=1.2e-5)
            if scale != "raw":
                assert min(written) > 0


def test_several_models(model, model_folder, tmp_path):
    other_model = BilingualModel(
        model.source_vocabulary,
        model.target_vocabulary,
        random_parameters(14, 4, 8),
        random_parameters(14, 4, 9),
        Rae(),
    )
    other_model.save(tmp_path / "other")
    table = write(tmp_path / "t", TABLES["crlf"])
    both = annotate(table, model_folder, "-m", tmp_path / "other", "-o", "-").out
    first, second = annotate(table, model_folder, "-o", "-").out, annotate(table, tmp_path / "other", "-o", "-").out
    assert naive.cut_columns(both, 4) == TABLES["crlf"]
    assert naive.cut_columns(both, 2) == first
    assert first != second
    assert [line.split(b"|||")[2].split()[-2:] for line in both.splitlines()] == [
        line.split(b"|||")[2].split()[-2:] for line in second.splitlines()
    ]


@pytest.mark.parametrize(
    ("name", "expected"), [("t.gz", "t.annotated.gz"), ("t", "t.annotated.gz"), ("a.txt", "a.txt.annotated.gz")]
)
def test_default_output(model_folder, tmp_path, name, expected):
    table = write(tmp_path / name, TABLES["lexicalised"])
    assert annotate(table, model_folder).code == 0
    data = (tmp_path / expected).read_bytes()
    assert data[3:8] == b"\0" * 5
    assert naive.cut_columns(gzip.decompress(data), 2) == TABLES["lexicalised"]
    assert len(list(tmp_path.iterdir())) == 2


def test_default_columns(model_folder, tmp_path, monkeypatch):
    """The defaults are smoothed and, if pairs are given, forced-decoding columns; $PHRASETOOL_MODEL is ignored."""
    table = write(
        tmp_path / "t", b"a ||| b ||| .5 .5 .5 .5 ||| 0-0 ||| 3 3 3\nb ||| b ||| .5 .5 .5 .5 ||| 0-0 ||| 2 1 1\n"
    )
    pairs = write(tmp_path / "p", b"a ||| b ||| 2\n")
    monkeypatch.setenv("PHRASETOOL_MODEL", str(model_folder))
    smoothed = run_inside("annotate", table, "--smoothing", "kneser-ney", "-o", "-", "-q").out
    assert run_inside("annotate", table, "-o", "-", "-q").out == smoothed != b""
    both = run_inside("annotate", table, "--forced-pairs", pairs, "--smoothing", "kneser-ney", "-o", "-", "-q").out
    assert run_inside("annotate", table, "--forced-pairs", pairs, "-o", "-", "-q").out == both
    similar = run_inside("annotate", table, "-m", model_folder, "-o", "-", "-q").out
    assert naive.cut_columns(similar, 2) == read(table)
    assert run_inside("annotate", table, "-m", model_folder, "--smoothing", "none", "-o", "-", "-q").out == similar
    nothing = run_inside("annotate", table, "--smoothing", "none", "-o", "-")
    assert (nothing.code, "nothing to append" in nothing.message) == (2, True)


def test_default_smoothing_that_fails_suggests_smoothing_none(tmp_path):
    stream = run_inside("annotate", "-", stdin=b"a ||| b ||| .5\n")
    assert (stream.code, "or --smoothing none with other columns" in stream.message) == (2, True)
    table = write(tmp_path / "t", b"a ||| b ||| .5\n")
    failed = run_inside("annotate", table, "-o", "-")
    assert failed.code == 1
    assert failed.message == (
        f"phrasetool: {table}:1: the entry has no joint count; smoothing needs c(t) c(s) c(s,t) in the fifth field; "
        "--smoothing none leaves the smoothed columns out"
    )


def test_malformed_lines(model_folder, tmp_path):
    table = write(tmp_path / "t", MALFORMED)
    good = [i for i in range(9) if i + 1 not in MALFORMED_LINES]
    before = naive.split_lines(MALFORMED)
    failed = annotate(table, model_folder, "-o", tmp_path / "o")
    assert failed.code == 1
    assert failed.message.startswith(f"phrasetool: {table}:2: ")
    skipped = annotate(table, model_folder, "-o", "-", "--on-error", "skip").out
    assert naive.cut_columns(skipped, 2) == b"".join(before[i] for i in good)
    kept = naive.split_lines(annotate(table, model_folder, "-o", "-", "--on-error", "keep").out)
    assert [line for i, line in enumerate(kept) if i not in good] == [before[i] for i in range(9) if i not in good]
    assert b"".join(kept[i] for i in good) == skipped
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]


def test_messages(model_folder, tmp_path):
    table = write(tmp_path / "t", MALFORMED + b"qq ||| the ||| 1 1\n")
    outcome = run_inside("annotate", table, "-m", model_folder, "-o", tmp_path / "o", "--on-error", "keep")
    assert "annotated 10 entries; 1 have only unknown words on a side; 7 malformed lines" in outcome.err
    assert "num-features=4" in outcome.err
    assert annotate(table, model_folder, "-o", tmp_path / "o", "--on-error", "keep").err == ""
