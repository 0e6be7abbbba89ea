"""Tables from Python: frames compared with slow Python, pruning and annotation with the commands."""

import json

import numpy as np
import pytest

from moses_compat.library import annotate, prune, read_table, table_blocks
from phrasetool.errors import DataError
from tests import naive
from tests.commands import read, run_inside, write
from tests.moses_compat.engine.test_extracted import GOLDEN
from tests.moses_compat.ini.ini_examples import VERSION_2
from tests.tables import INI, MALFORMED, MALFORMED_LINES, OTHER_FILES, TABLES

DATA = TABLES["seven fields"].replace(b"gr\xfcn", b"gr\xc3\xbcn") * 2
TEXTS = {"source": 0, "target": 1, "alignment": 3, "sparse": 5, "properties": 6}
COUNTS = ["count_target", "count_source", "count_joint"]


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "t.gz", DATA)


def done(*arguments):
    outcome = run_inside(*arguments, "-q")
    assert outcome.code == 0, outcome.err
    return outcome


def split(line):
    return [field.strip() for field in line.decode().rstrip("\n").split("|||")]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_row_a_line(table, threads):
    frame = read_table(table, threads=threads)
    lines = naive.split_lines(DATA)
    assert frame.index.tolist() == list(range(len(lines)))
    assert [*frame.columns] == [
        "source", "target", "score_1", "score_2", "score_3", "score_4", "alignment", *COUNTS, "sparse", "properties",
    ]  # fmt: skip
    rows = [split(line) for line in lines]
    for name, field in TEXTS.items():
        assert frame[name].tolist() == [row[field] for row in rows]
    for column in range(4):
        scores = frame[f"score_{column + 1}"]
        assert scores.dtype == np.float32
        assert scores.tolist() == [float(np.float32(row[2].split()[column])) for row in rows]
    for column, name in enumerate(COUNTS):
        assert frame[name].dtype == np.float64
        assert frame[name].tolist() == [float(row[4].split()[column]) for row in rows]


def test_malformed_lines_are_rows_with_holes(tmp_path):
    frame = read_table(write(tmp_path / "t", MALFORMED))
    malformed = frame.index.isin(np.array(MALFORMED_LINES) - 1)
    assert frame[["score_1", "score_2"]].isna().all(axis=1).tolist() == malformed.tolist()
    assert not frame[~malformed][["score_1", "score_2"]].isna().any(axis=None)
    assert frame[["source", "target"]].iloc[4].tolist() == ["das", "it"]
    assert frame.source.iloc[5] == "no separator at all"
    assert frame.target.isna().tolist() == [i in (2, 5) for i in range(9)]
    # The alignment is missing in a line that ends after its scores, and empty if its field is empty.
    assert frame.alignment.isna().tolist() == [i in (2, 3, 4, 5, 6, 8) for i in range(9)]
    assert frame[COUNTS].isna().all(axis=None)


@pytest.mark.parametrize("data", [b"", b"no ||| valid ||| score\nno ||| such ||| two scores\n"])
def test_tables_without_an_entry(tmp_path, data):
    path = write(tmp_path / "t", data)
    frame = read_table(path)
    assert len(frame) == data.count(b"\n")
    assert [name for name in frame if name.startswith("score")] == []
    assert [len(block) for block in table_blocks(path)] == [len(frame)]
    assert {"source", "target", "alignment", *COUNTS} < {*frame}


@pytest.mark.parametrize("size", [1, 400, 1 << 21])
def test_blocks_are_the_table_cut_between_sources(table, size):
    blocks = list(table_blocks(table, block_bytes=size, threads=2))
    whole = read_table(table)
    assert len(blocks) > 3 or size > 400
    at = 0
    for block in blocks:
        assert block.equals(whole.iloc[at : at + len(block)])
        assert block.index.tolist() == list(range(at, at + len(block)))
        assert at == 0 or whole.source[at] != whole.source[at - 1]
        at += len(block)
    assert at == len(whole)


@pytest.mark.parametrize("count", [3, 40_000])
def test_more_than_a_block(tmp_path, count):
    """Fields that only some lines have, far from the lines without them, are read."""
    plain = b"".join(b"a%d ||| b ||| 0.5 0.25\n" % i for i in range(count))
    full = b"".join(b"c%d ||| d ||| 0.5 1 ||| 0-0 ||| 3 2 1 ||| |||\n" % i for i in range(count))
    frame = read_table(write(tmp_path / "t", plain + full))
    assert frame.alignment.isna().tolist() == [True] * count + [False] * count
    assert frame.count_joint.tolist()[count:] == [1.0] * count
    assert frame.score_2.sum() == count * 1.25


@pytest.mark.parametrize("name", ["ini", "arpa", "lexical"])
def test_other_files(tmp_path, name):
    with pytest.raises(DataError, match=r"t: looks like .*; expected a phrase table"):
        read_table(write(tmp_path / "t", OTHER_FILES[name]))


def test_a_reordering_table_is_read(tmp_path):
    table = TABLES["reordering"]
    assert len(read_table(write(tmp_path / "t", table))) == table.count(b"\n")


def test_bytes_that_are_not_utf8_are_replaced(tmp_path):
    frame = read_table(write(tmp_path / "t", b"gr\xfcn ||| \xc3\xbc ||| 0.5\n"))
    assert (frame.source[0], frame.target[0]) == ("gr?n", "ü")


def test_no_table(tmp_path, table):
    with pytest.raises(DataError, match="t: "):
        read_table(write(tmp_path / "t", b"PAR1\0\0"))
    damaged = tmp_path / "cut.gz"
    damaged.write_bytes(table.read_bytes()[:-9])
    with pytest.raises(DataError, match="the gzip data end too early"):
        read_table(damaged)
    with pytest.raises(DataError, match="No such file"):
        read_table(tmp_path / "none")


PRUNES = {
    "threshold": ({"threshold": 0.1}, ["-t", "0.1"]),
    "threshold as text": ({"threshold": "0.1", "protect": "words", "keep_top": 1},
                          ["-t", "0.1", "--protect", "words", "--keep-top", "1"]),
    "size": ({"target_size": 0.5, "protect": "words", "keep_top": 2},
             ["--target-size", "0.5", "--protect", "words", "--keep-top", "2"]),
    "several": ({"target_size": 0.6, "method": "count+semantic", "combine": "product", "protect": "none"},
                ["--target-size", "0.6", "--method", "count+semantic", "--combine", "product", "--protect", "none"]),
    "no model": ({"target_size": 0.4, "method": "probability", "keep_top": 1, "threads": 2},
                 ["--target-size", "0.4", "--method", "probability", "--keep-top", "1"]),
    "own thresholds": ({"method": "count:30+probability:0.2", "combine": "union", "protect": "none"},
                       ["--method", "count:30+probability:0.2", "--combine", "union", "--protect", "none"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PRUNES)
def test_prune_is_the_command(table, model_folder, tmp_path, name):
    options, flags = PRUNES[name]
    with_model = {"model": model_folder} if "semantic" in options.get("method", "semantic") else {}
    by_hand = tmp_path / "hand.gz"
    done(
        "prune", table, "--force", *flags, "-o", by_hand, "--stats", tmp_path / "stats",
        *(("-m", model_folder) if with_model else ()),
    )  # fmt: skip
    result = prune(table, tmp_path / "out.gz", force=True, **with_model, **options)
    assert (tmp_path / "out.gz").read_bytes() == by_hand.read_bytes()
    stats = json.loads((tmp_path / "stats").read_bytes())
    assert (result.signature, result.statistics.kept) == (stats["signature"], stats["kept"])
    assert 0 < result.statistics.kept < result.statistics.entries == len(result.entries)
    assert result.reordering is None


@pytest.mark.parametrize("name", PRUNES)
@pytest.mark.parametrize("size", [1, 1 << 21])
def test_the_frame_is_what_was_written(table, model_folder, tmp_path, name, size):
    options = PRUNES[name][0]
    with_model = {"model": model_folder} if "semantic" in options.get("method", "semantic") else {}
    entries = prune(table, tmp_path / "out", block_bytes=size, force=True, **with_model, **options).entries
    lines = naive.split_lines(DATA)
    assert [entries[column].dtype for column in ("keep", "fails", "protected")] == [np.bool_] * 3
    assert b"".join(line for line, keep in zip(lines, entries.keep, strict=True) if keep) == read(tmp_path / "out")
    assert (entries.keep == ~(entries.fails & ~entries.protected)).all()
    assert entries.index.tolist() == list(range(len(lines)))
    if name == "threshold":
        assert [*entries.columns][3:5] == ["similarity_st", "similarity_ts"]
        best = entries[["similarity_st", "similarity_ts"]].max(axis=1)
        # An entry without a score never fails.
        assert (best[entries.fails] < 0.1).all()
        assert (~entries.fails[best >= 0.1]).all()
    if name == "several":
        assert [*entries.columns][3:] == ["count", "semantic"]
    if name == "own thresholds":
        counts = [float(line.split(b"|||")[4].split()[2]) for line in lines]
        assert entries["count"].tolist() == counts


def test_malformed_lines_are_kept_or_not(tmp_path, model_folder):
    path = write(tmp_path / "t", MALFORMED)
    with pytest.raises(DataError, match="t:2: a score is not a number"):
        prune(path, tmp_path / "out", model=model_folder, threshold=1)
    assert not (tmp_path / "out").exists()
    for on_error in ("skip", "keep"):
        result = prune(path, tmp_path / "out", model=model_folder, threshold=1, on_error=on_error, protect="none")
        expected = [on_error == "keep"] * 9
        expected[0] = expected[8] = False
        assert result.entries.keep.tolist() == expected
        assert read(tmp_path / "out").count(b"\n") == sum(expected)


@pytest.mark.parametrize("method", [None, "count"])
def test_an_empty_table(tmp_path, model_folder, method):
    table, options = write(tmp_path / "t", b""), {"threshold": 0.5, "method": method}
    if method is None:
        options["model"] = model_folder
    with pytest.raises(DataError, match="t: is empty; expected a phrase table"):
        prune(table, tmp_path / "out", **options)
    result = prune(table, tmp_path / "out", allow_empty=True, **options)
    assert (len(result.entries), result.statistics.entries) == (0, 0)
    assert [result.entries[name].dtype for name in ("keep", "fails", "protected")] == [np.bool_] * 3
    assert read(tmp_path / "out") == b""


def test_files_besides_the_table(tmp_path, table, model_folder):
    scores = b"".join(b"|||".join(line.split(b"|||")[:2]) + b"||| 0.2 0.8\n" for line in naive.split_lines(DATA))
    reordering = write(tmp_path / "r.gz", scores)
    flags = ("--reordering-table", reordering, "--reordering-out")
    done(
        "prune",
        table,
        "--force",
        "-t",
        "0.1",
        "-m",
        model_folder,
        *flags,
        tmp_path / "hand-r.gz",
        "-o",
        tmp_path / "hand.gz",
    )
    result = prune(
        table, tmp_path / "out.gz", model=model_folder, threshold=0.1, force=True, reordering_table=reordering,
        reordering_out=tmp_path / "r-out.gz", rejected=tmp_path / "rejected",
        reasons=tmp_path / "reasons", stats=tmp_path / "stats",
    )  # fmt: skip
    assert (tmp_path / "r-out.gz").read_bytes() == (tmp_path / "hand-r.gz").read_bytes()
    assert result.reordering.kept == read(tmp_path / "r-out.gz").count(b"\n")
    lines = naive.split_lines(DATA)
    assert json.loads(read(tmp_path / "stats"))["kept"] == result.statistics.kept
    assert (tmp_path / "reasons").exists()
    removed = [line for line, keep in zip(lines, result.entries.keep, strict=True) if not keep]
    assert read(tmp_path / "rejected") == b"".join(removed)


def test_weights_and_uses(tmp_path, table, model_folder):
    ini = write(tmp_path / "moses.ini", INI.replace("path=t ", f"path={table} ").encode())
    pairs = write(tmp_path / "pairs", b"das ||| the ||| 3\ndas haus ||| the house ||| 2\n" + _some_pairs(7))
    size = ["--target-size", "0.3", "--moses-ini", ini, "--forced-pairs", pairs, "-m", model_folder]
    done("prune", table, "--force", *size, "-o", tmp_path / "hand.gz")
    result = prune(
        table, tmp_path / "out.gz", target_size=0.3, moses_ini=ini, forced_pairs=pairs, model=model_folder,
        force=True,
    )  # fmt: skip
    assert (tmp_path / "out.gz").read_bytes() == (tmp_path / "hand.gz").read_bytes()
    assert "method:composition+semantic+usage" in result.signature
    assert [*result.entries.columns][3:] == ["composition", "semantic", "usage"]


def _some_pairs(step, data=DATA):
    fields = [line.split(b"|||") for line in naive.split_lines(data)[::step]]
    return b"".join(b"%s|||%s||| 2\n" % (source, target) for source, target, *_ in fields)


def test_what_prune_refuses(table, tmp_path, model_folder):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="give one of threshold, target_size"):
        prune(table, out, model=model_folder)
    with pytest.raises(ValueError, match="needs the weights"):
        prune(table, out, target_size=0.5, method="composition")
    with pytest.raises(ValueError, match="give corpus"):
        prune(table, out, target_size=0.5, method="significance")
    with pytest.raises(ValueError, match="is not a number"):
        prune(table, out, threshold="half", model=model_folder)
    with pytest.raises(TypeError, match="unexpected keyword argument 'treshold'"):
        prune(table, out, treshold=0.5)
    assert not out.exists()


ANNOTATIONS = {
    "one model": ([True], {}, []),
    "two models, raw": ([True, True], {"scale": "raw"}, ["--scale", "raw"]),
    "smoothed": ([], {"smoothing": "kneser-ney"}, ["--smoothing", "kneser-ney"]),
    "everything": ([True], {"smoothing": "good-turing", "scale": "probability", "threads": 2},
                   ["--smoothing", "good-turing", "--scale", "probability"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ANNOTATIONS)
@pytest.mark.parametrize("forced", [False, True])
def test_annotate_is_the_command(tmp_path, model_folder, name, forced):
    models, options, flags = ANNOTATIONS[name]
    # Smoothing needs consistent counts.
    before = read(GOLDEN / "table.3.gz") if "smoothing" in options else TABLES["seven fields"]
    table = write(tmp_path / "t.gz", before)
    folders = [model_folder for _ in models]
    if forced:
        pairs = write(tmp_path / "pairs", _some_pairs(3, before))
        options, flags = {**options, "forced_pairs": pairs}, [*flags, "--forced-pairs", pairs]
    named = [part for folder in folders for part in ("-m", folder)]
    done("annotate", table, *named, *flags, "-o", tmp_path / "hand.gz")
    counts = annotate(table, tmp_path / "out.gz", folders, **options)
    assert (tmp_path / "out.gz").read_bytes() == (tmp_path / "hand.gz").read_bytes()
    data = read(tmp_path / "out.gz")
    more = 2 * (len(folders) + forced + ("smoothing" in options))
    assert naive.cut_columns(data, more) == before
    assert (counts.entries, counts.scores) == (data.count(b"\n"), 4)
    assert (counts.used > 0) == forced
    assert [name for name in read_table(tmp_path / "out.gz") if name.startswith("score_")][-1] == f"score_{4 + more}"


@pytest.mark.parametrize("weight", [0.0, -0.125])
def test_annotate_with_an_ini(tmp_path, model_folder, weight):
    table = write(tmp_path / "small.gz", TABLES["lattice"])
    ini = write(tmp_path / "moses.ini", VERSION_2.encode())
    done(
        "annotate", table, "-m", model_folder, "-o", tmp_path / "more.gz", "--moses-ini", ini, "--moses-ini-out",
        tmp_path / "hand.ini", "--weight", weight,
    )  # fmt: skip
    hand = (tmp_path / "more.gz").read_bytes()
    out = tmp_path / "out.ini"
    annotate(table, tmp_path / "more.gz", [model_folder], moses_ini=ini, moses_ini_out=out, weight=weight)
    assert out.read_bytes() == (tmp_path / "hand.ini").read_bytes()
    assert (tmp_path / "more.gz").read_bytes() == hand


def test_what_annotate_refuses(tmp_path, table, model_folder):
    out, ini = tmp_path / "out", write(tmp_path / "moses.ini", VERSION_2.encode())
    with pytest.raises(ValueError, match="nothing to append"):
        annotate(table, out)
    for options in ({"moses_ini": ini}, {"moses_ini_out": tmp_path / "new.ini"}):
        with pytest.raises(ValueError, match="must be given together"):
            annotate(table, out, [model_folder], **options)
    # The ini refers to another table, so nothing is written.
    with pytest.raises(DataError, match=r"moses\.ini: "):
        annotate(table, out, [model_folder], moses_ini=ini, moses_ini_out=tmp_path / "new.ini")
    with pytest.raises(DataError, match="t:2: a score is not a number"):
        annotate(write(tmp_path / "t", MALFORMED), out, [model_folder])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["moses.ini", "t", "t.gz"]
    assert annotate(tmp_path / "t", out, [model_folder], on_error="skip").malformed == len(MALFORMED_LINES)
    assert read(out).count(b"\n") == 2
