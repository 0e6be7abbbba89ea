"""moses.ini files of version 1 have the same meaning as in Moses."""

import pytest

from moses_compat.engine.model import MosesModel
from moses_compat.ini.reading import read_moses_ini
from phrasetool.errors import DataError
from tests.commands import run_inside, write
from tests.moses_compat.ini.ini_examples import VERSION_1


@pytest.fixture
def write_ini(tmp_path):
    def write_it(text):
        return str(write(tmp_path / "moses.ini", text.encode()))

    return write_it


def test_what_is_read(write_ini):
    ini = read_moses_ini(write_ini(VERSION_1))
    assert ini.version == 1
    assert [(f.kind, f.name, f.section) for f in ini.features] == [
        ("WordPenalty", "WordPenalty0", "weight-w"),
        ("KENLM", "KENLM0", "lmodel-file"),
        ("Distortion", "Distortion0", "weight-d"),
        ("LexicalReordering", "LexicalReordering0", "distortion-file"),
        ("PhraseDictionaryMemory", "PhraseDictionaryMemory0", "ttable-file"),
        ("PhraseDictionaryMemory", "PhraseDictionaryMemory1", "ttable-file"),
        ("UnknownWordPenalty", "UnknownWordPenalty0", ""),
    ]
    assert ini.weights == {
        "WordPenalty0": [-1], "KENLM0": [0.5], "Distortion0": [0.3],
        "LexicalReordering0": [0.31, 0.32, 0.33, 0.34, 0.35, 0.36],
        "PhraseDictionaryMemory0": [0.0639497231451392, 0.1], "PhraseDictionaryMemory1": [1],
    }  # fmt: skip
    first = ini.features[4]
    assert VERSION_1.split("\n")[first.line - 1].startswith("0 0 0 2  small.gz")
    assert dict(first.arguments) == {
        "input-factor": "0", "output-factor": "0", "num-features": "2", "path": "small.gz", "table-limit": "20",
    }  # fmt: skip
    for name, lines in ini.number_lines.items():
        assert [float(VERSION_1.split("\n")[n - 1].split("#")[0]) for n in lines] == ini.weights[name]
        assert ini.weight_lines[name] == lines[0]


# An end-to-end run of version 1 in Moses' regression tests (misc.binarize-compress-pt, sentence 3): the scores of its
# table, reordering table and language model, its weights, and the total that Moses wrote.
MOSES_TOTAL = -0.791854
MOSES_INI = """\
[ttable-file]
0 0 0 5 table
[ttable-limit]
20
[weight-t]
0.00496877
0.103692
0.0896699
-0.0366843
-0.000585477
[distortion-file]
0-0 msd-bidirectional-fe 6 reordering
[weight-d]
0.05
0.104835
0.2
0.3
0.4
0.5
0.6
[lmodel-file]
8 0 3 lm.arpa
[weight-l]
0.0829075
[weight-w]
0.197944
[distortion-limit]
6
"""
ARPA = b"""\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-9\t<unk>
-9\t<s>\t0
-9\t</s>
-9\tdocumentation\t0

\\2-grams:
-2.67131\t<s> documentation
-0.189026\tdocumentation </s>

\\end\\
"""


def test_the_score_of_a_run_of_moses(write_ini, tmp_path):
    write(tmp_path / "table", b"documentaci\xc3\xb3n ||| documentation ||| 0.886364 0.97619 0.951219 0.97619 2.718\n")
    write(tmp_path / "reordering", b"documentaci\xc3\xb3n ||| documentation ||| 0.679012 0.2 0.1 0.5 0.3 0.2\n")
    write(tmp_path / "lm.arpa", ARPA)
    ini = write_ini(MOSES_INI)
    outcome = run_inside("decode", "--moses-ini", ini, "-q", "--n-best-list", tmp_path / "list", "1",
                         stdin=b"documentaci\xc3\xb3n\n")  # fmt: skip
    assert (outcome.code, outcome.out) == (0, b"documentation\n")
    line = (tmp_path / "list").read_text()
    assert float(line.split(" ||| ")[3]) == pytest.approx(MOSES_TOTAL, abs=2e-6)
    assert "Distortion0= 0" in line
    assert "PhraseDictionaryMemory0= -0.120628 -0.0240981 -0.0500109 -0.0240981 0.999896" in line


ONE_TABLE = VERSION_1.replace("6 0 0 1 /tables/glue\n", "").replace("\n1.0\n", "\n").replace("\n0 T 1\n", "\n")


def test_a_model(write_ini):
    model = MosesModel.read(write_ini(ONE_TABLE + "[weight-p]\n0.2\n[weight-u]\n0.5\n"))
    assert model.weights.tolist() == [0.31, 0.32, 0.33, 0.34, 0.35, 0.36, 0.3, 0.5, -1, 0.2, 0.0639497231451392, 0.1]
    assert model.features.unknown_weight == 0.5
    assert (model.search.distortion_limit, model.search.table_limit) == (6, 20)
    assert model.listed == (
        "LM", "Distortion", "LexicalReordering", "PhrasePenalty", "WordPenalty", "TranslationModel",
    )  # fmt: skip
    assert MosesModel.read(write_ini(ONE_TABLE)).features.unknown_weight == 1


def test_a_model_of_two_tables(write_ini):
    model = MosesModel.read(write_ini(VERSION_1.replace("0 T 1", "1 T 1")))
    assert (model.features.tables, model.decoding) == ((2, 1), (0, 1))
    assert [path.rpartition("/")[2] for path in model.table_files] == ["small.gz", "glue"]
    assert len(model.named_weights(model.weights)["PhraseDictionaryMemory1"]) == 1


def test_limits_of_each_table(write_ini):
    ini = read_moses_ini(write_ini(VERSION_1.replace("[ttable-limit]\n20", "[ttable-limit]\n20\n7")))
    assert [f.arguments["table-limit"] for f in ini.features if f.section == "ttable-file"] == ["20", "7"]
    ini = read_moses_ini(write_ini(VERSION_1.replace("[ttable-limit]\n20", "")))
    assert not any("table-limit" in f.arguments for f in ini.features)


def test_language_models(write_ini):
    text = "[lmodel-oov-feature]\n1\n[lmodel-file]\n0 0 5 a\n9 1 3 b\n5 0 3 c\n[weight-l]\n1\n2\n3\n4\n"
    ini = read_moses_ini(write_ini(text))
    assert [(f.kind, f.name, f.arguments["path"]) for f in ini.features if f.section == "lmodel-file"] == [
        ("SRILM", "SRILM0", "a"), ("KENLM", "KENLM1", "b"), ("[lmodel-file] 5", "[lmodel-file] 52", "c"),
    ]  # fmt: skip
    assert ini.weights["SRILM0"] == [1, 2]
    assert ini.weights["KENLM1"] == [3]


def test_other_tables_have_their_class(write_ini):
    lines = [f"{number} 0 0 1 a b c\n" for number in (1, 2, 12, 6, 0, 14, 99)]
    ini = read_moses_ini(write_ini("".join(["[ttable-file]\n", *lines, "[weight-t]\n", *["1\n"] * 7])))
    assert [f.name for f in ini.features if f.section == "ttable-file"] == [
        "PhraseDictionaryBinary0", "PhraseDictionaryOnDisk0", "PhraseDictionaryCompact0", "PhraseDictionaryMemory0",
        "PhraseDictionaryMemory1", "PhraseDictionaryDynSuffixArray0", "[ttable-file] 990",
    ]  # fmt: skip


# (Old text, new text, message).
FAULTS = [
    ("0 0 0 2  small.gz", "0 0 0 2", r"moses.ini:12: \[ttable-file\]: expected `type input-factors .* found '0 0 0 2'"),
    ("0 0 0 2  small.gz", "x 0 0 2 t", r"moses.ini:12: \[ttable-file\]: expected a whole number, found 'x'"),
    ("0 0 0 2  small.gz", "0 0 0 -2 t", r"moses.ini:12: \[ttable-file\]: expected a whole number, found '-2'"),
    ("0 0 0 2  small.gz", "0 0 0 3 t", r"moses.ini:13: the tables have 4 scores, but \[weight-t\] 3 numbers"),
    ("\n1.0\n", "\n1.0\n2.0\n", r"moses.ini:13: the tables have 3 scores, but \[weight-t\] 4 numbers"),
    ("\n1.0\n", "\n", r"moses.ini:13: the tables have 3 scores, but \[weight-t\] 2 numbers"),
    ("\n1.0\n", "\n1 0\n", r"\[weight-t\]: expected one finite number a line, found '1 0'"),
    ("\n1.0\n", "\nnan\n", r"\[weight-t\]: expected one finite number a line"),
    ("\n0.36\n", "\n", r"the model has 6 scores, but \[weight-d\] only 5 numbers for them"),
    ("\n0.5\n", "\n", r"\[weight-l\] has no weight for this model"),
    ("\n-1\n", "\n-1\n-2\n", r"\[weight-w\]: expected one weight, found 2"),
    ("8 0 3 /models", "8 0", r"\[lmodel-file\]: expected `type factor order path`"),
    ("[ttable-limit]\n20", "[ttable-limit]\n20\n20\n[ttable-file]\n0 0 0 0 x", "3 tables but 2 numbers"),
    ("[weight-w]", "[weight]\nx= 1\n[weight-w]", r"there is no \[feature\] section"),
]


@pytest.mark.parametrize(("old", "new", "message"), FAULTS, ids=range(len(FAULTS)))
def test_faults_name_their_line(write_ini, old, new, message):
    assert VERSION_1.count(old) == 1 or old.startswith("\n")
    with pytest.raises(DataError, match=message):
        read_moses_ini(write_ini(VERSION_1.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("[generation-file]\n0 1 3 g\n", r"moses.ini:2: the decoder does not know the feature \[generation-file\]"),
        ("[weight-i]\n1\n", r"does not know the feature \[weight-i\]"),
        ("[drop-unknown]\n1\n", r"moses.ini:2: \[drop-unknown\] 1: .* not support"),
    ],
)
def test_what_the_decoder_lacks_is_refused(write_ini, section, message):
    with pytest.raises(DataError, match=message):
        MosesModel.read(write_ini(section + ONE_TABLE))
    with pytest.raises(DataError, match="'0 T 1': expected each path and each table once, in order; paths"):
        MosesModel.read(write_ini(VERSION_1))


def test_annotated_with_weight_0_it_has_the_same_score(write_ini, tmp_path, model_folder):
    write(tmp_path / "table", b"documentaci\xc3\xb3n ||| documentation ||| 0.886364 0.97619 0.951219 0.97619 2.718\n")
    write(tmp_path / "reordering", b"documentaci\xc3\xb3n ||| documentation ||| 0.679012 0.2 0.1 0.5 0.3 0.2\n")
    write(tmp_path / "lm.arpa", ARPA)
    ini, result = write_ini(MOSES_INI), tmp_path / "found.ini"
    outcome = run_inside("annotate", tmp_path / "table", "-m", model_folder, "-q", "--moses-ini", ini,
                         "--moses-ini-out", result)  # fmt: skip
    assert outcome.code == 0
    run_inside("decode", "--moses-ini", result, "-q", "--n-best-list", tmp_path / "list", "1",
               stdin=b"documentaci\xc3\xb3n\n")  # fmt: skip
    features, total = (tmp_path / "list").read_text().split(" ||| ")[2:4]
    assert float(total) == pytest.approx(MOSES_TOTAL, abs=2e-6)
    # The last feature has its five scores and two new ones.
    assert len(features.split("PhraseDictionaryMemory0= ")[1].split()) == 7
