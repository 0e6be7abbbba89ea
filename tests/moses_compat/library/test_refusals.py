"""Invalid arguments are rejected before any work starts."""

import pytest

import phrasetool
from phrasetool.errors import DeviceError
from tests.commands import write
from tests.small_experiment import write_experiment
from tests.variants import for_each

LINE = b"a ||| x ||| 0.5 0.5\nb ||| y ||| 0.25 0.5\n"
SIMILAR = {"columns": (0, 1), "scale": "raw"}


@for_each(
    ("options", "error", "message"),
    [
        ({}, ValueError, "give one of threshold"),
        ({"threshold": 0.3, "target_size": 0.5}, ValueError, "give one of .*, not both threshold and target_size"),
        ({"method": "count:2", "target_size": 0.5}, ValueError, "method have their own thresholds"),
        ({"target_size": 5}, ValueError, "target_size is a share of the entries"),
        ({"threshold": 0.3, "reordering_out": "r"}, ValueError, "give both .*, or neither"),
        ({"threshold": 0.3, "reordering_table": "r"}, ValueError, "give both .*, or neither"),
        ({"threshold": 0.3, "method": "significance"}, ValueError, "give corpus SOURCE TARGET"),
        ({"threshold": 0.3, "sweep": [0.1]}, TypeError, "no option 'sweep'"),
        ({"threshold": 0.3, "corpora": ("a", "b")}, TypeError, "no option 'corpora'"),
        ({"threshold": 0.3, "sort": True}, TypeError, "no option 'sort'"),
        ({"threshold": 0.3, "reading": "foo"}, ValueError, "^reading is 'foo'; expected one of normalised, density$"),
        ({"threshold": 0.3, "device": "foo"}, DeviceError, "^unknown device 'foo'"),
        ({"threshold": 0.3, "nothing": 1}, TypeError, "nothing"),
        ({"threshold": 0.3, "corpus": ("nope", "nope")}, ValueError, "^corpus is for the method significance, not for"),
        ({"threshold": 0.3, "forced_pairs": "nope"}, ValueError, "^forced_pairs is for the method usage, not for sem"),
        ({"threshold": 0.3, "combine": "rank"}, ValueError, "^combine is for several criteria; method semantic is one"),
        ({"threshold": 2, "method": "count"}, ValueError, "^columns is for methods with similarities, not for count"),
        ({"max_bleu_loss": 0.3, "moses_ini": "i", "dev": ("a", "b"), "on_error": "skip"}, ValueError,
         "^on_error is for thresholds and sizes; the decoder of max_bleu_loss reads no malformed lines$"),
        ({"threshold": "x"}, ValueError, "not a number"),
        ({"threshold": 0.3, "block_bytes": 0}, ValueError, "^block_bytes is 0, expected at least 1$"),
        ({"threshold": 0.3, "max_line": 0}, ValueError, "^max_line is 0, expected at least 1$"),
        ({"threshold": 0.3, "columns": (1, -1)}, ValueError, r"^columns are positions .*, not \(1, -1\)$"),
    ],
)  # fmt: skip
def test_prune(tmp_path, options, error, message):
    table = write(tmp_path / "table", LINE)
    with pytest.raises(error, match=message):
        phrasetool.prune(table, tmp_path / "out", **SIMILAR | options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table"]


def test_table_blocks(tmp_path):
    with pytest.raises(ValueError, match=r"^block_bytes is -1, expected at least 1$"):
        next(phrasetool.table_blocks(write(tmp_path / "table", LINE), block_bytes=-1))


INPUT, TWICE = "the output is the input", "two outputs go to one file"


@for_each(
    ("function", "arguments", "options", "message"),
    [
        ("prune", ("table.gz", "table.gz"), {}, f"table.gz: {INPUT} table.gz"),
        ("prune", ("table.gz", "./out"), {"rejected": "out"}, f"out: {TWICE}"),
        ("prune", ("table.gz", "out"), {"reordering_table": "ro", "reordering_out": "out"}, f"out: {TWICE}"),
        ("prune", ("table.gz", "out"), {"reordering_table": "ro", "reordering_out": "ro"}, f"ro: {INPUT} ro"),
        ("prune", ("table.gz", "moses.ini"), {"moses_ini": "moses.ini"}, f"moses.ini: {INPUT} moses.ini"),
        ("prune", ("table.gz", "lm.arpa"), {"moses_ini": "moses.ini"}, f"lm.arpa: {INPUT} lm.arpa"),
        ("annotate", ("table.gz", "table.gz"), {}, f"table.gz: {INPUT} table.gz"),
        ("annotate", ("table.gz", "out"), {"moses_ini": "moses.ini", "moses_ini_out": "out"}, f"out: {TWICE}"),
        ("annotate", ("table.gz", "out"), {"moses_ini": "moses.ini", "moses_ini_out": "lm.arpa"},
         f"lm.arpa: {INPUT} lm.arpa"),
        ("tune", ("moses.ini", "dev.src", ["dev.trg"], "dev.trg"), {}, f"dev.trg: {INPUT} dev.trg"),
        ("tune", ("moses.ini", "dev.src", ["dev.trg"], "lm.arpa"), {}, f"lm.arpa: {INPUT} lm.arpa"),
    ],
)  # fmt: skip
def test_outputs_that_are_inputs_or_other_outputs(tmp_path, monkeypatch, function, arguments, options, message):
    write_experiment(tmp_path)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "ro", b"a ||| x ||| 0.5 0.5\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    always = {"prune": {"target_size": 0.5, "method": "random"}, "annotate": {"smoothing": "kneser-ney"}}
    with pytest.raises(phrasetool.PhraseToolError, match=f"^(./)?{message}"):
        getattr(phrasetool, function)(*arguments, **always.get(function, {}), **options)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_annotate(tmp_path):
    table = write(tmp_path / "table", LINE)
    with pytest.raises(ValueError, match="nothing to append"):
        phrasetool.annotate(table, tmp_path / "out")
    with pytest.raises(ValueError, match="must be given together"):
        phrasetool.annotate(table, tmp_path / "out", smoothing="kneser-ney", moses_ini="moses.ini")
    inis = {"moses_ini": "moses.ini", "moses_ini_out": "new.ini"}
    with pytest.raises(ValueError, match=r"^the scale 'raw' is not for Moses"):
        phrasetool.annotate(table, tmp_path / "out", ["model"], scale="raw", **inis)
    with pytest.raises(ValueError, match=r"^the weight is for a new moses\.ini"):
        phrasetool.annotate(table, tmp_path / "out", smoothing="kneser-ney", weight=0.1)
    with pytest.raises(ValueError, match=r"^unknown scale 'foo'; expected one of exp, probability, raw, softmax$"):
        phrasetool.annotate(table, tmp_path / "out", smoothing="kneser-ney", scale="foo")
    with pytest.raises(ValueError, match=r"^unknown reading 'foo'; expected one of normalised, density$"):
        phrasetool.annotate(table, tmp_path / "out", smoothing="kneser-ney", reading="foo")
    with pytest.raises(TypeError, match="expected several models"):
        phrasetool.annotate(table, tmp_path / "out", "model")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table"]


@for_each("weight", [float("nan"), float("inf")])
def test_weights_of_new_columns(tmp_path, weight):
    write_experiment(tmp_path)
    inis = {"moses_ini": tmp_path / "moses.ini", "moses_ini_out": tmp_path / "new.ini"}
    with pytest.raises(ValueError, match=f"^the weight is {weight}, expected a finite number$"):
        phrasetool.annotate(tmp_path / "table.gz", tmp_path / "out", smoothing="kneser-ney", weight=weight, **inis)
    assert not (tmp_path / "new.ini").exists()


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "b", 1, 2)], "expected a source, a target"),
        ([("a ||| b", "c")], "line feed or"),
        ([("a\nb", "c")], "line feed or"),
    ],
)
def test_train(tmp_path, pairs, message):
    with pytest.raises(ValueError, match=message):
        phrasetool.train(pairs, tmp_path / "model", dimension=4, iterations=1)


def test_training_is_continued_or_replaced(tmp_path):
    with pytest.raises(ValueError, match=r"^give resume or overwrite, not both$"):
        phrasetool.train([("a", "b")], tmp_path / "model", resume=True, overwrite=True)


def test_pairs_of_which_none_is_left(tmp_path):
    with pytest.raises(phrasetool.DataError, match=r"^the pairs: no phrase pair of 1 to 7 words"):
        phrasetool.train([("a b c d e f g h", "x")], tmp_path / "model", dimension=4, iterations=1)


@for_each("count", [-1, float("nan")])
def test_counts_of_pairs(tmp_path, count):
    pairs = [("a", "b", 1), ("a", "c", count)]
    with pytest.raises(phrasetool.DataError, match=f"^the pairs:2: expected a count, a number .*, found '{count}'$"):
        phrasetool.train(pairs, tmp_path / "model", dimension=4, iterations=1)


def test_tune():
    with pytest.raises(TypeError, match="expected several references, found one path"):
        phrasetool.tune("moses.ini", "dev.src", "dev.trg", "out.ini")
    with pytest.raises(ValueError, match="at least one reference"):
        phrasetool.tune("moses.ini", "dev.src", [], "out.ini")


def test_decode():
    with pytest.raises(TypeError, match="several sentences"):
        phrasetool.decode("a b", "moses.ini")
    for sentence in ("a\nb", "a b\r"):
        with pytest.raises(ValueError, match="line feed or a carriage return"):
            phrasetool.decode([sentence], "moses.ini")
