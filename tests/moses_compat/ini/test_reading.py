"""Reading of moses.ini files, writing of weights without other changes, and errors."""

import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.engine.model import MosesModel
from moses_compat.ini.editing import moved_to, with_weights
from moses_compat.ini.moses_ini import ENCODING
from moses_compat.ini.reading import check_sections, known_sections, parse_moses_ini, read_moses_ini
from phrasetool.errors import DataError
from tests import moses_settings
from tests.commands import run_inside

INI = """\
#########################
### MOSES CONFIG FILE ###
#########################

[input-factors]
0

# mapping steps
[mapping]
0 T 0

[distortion-limit]
6 # words

[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=table.gz input-factor=0 output-factor=0
LexicalReordering name=RO num-features=6 type=wbe-msd-bidirectional-fe-allff path=ro.gz input-factor=0 output-factor=0
Distortion
KENLM name=LM0 factor=0 path=/models/lm.arpa order=3

[a-section-of-the-future]
anything at all = [goes]

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2   # per phrase
TranslationModel0= 0.2 0.2 0.2 0.2
RO= 0.3 0.3 0.3 0.3 0.3 0.3
Distortion0= 0.3
LM0= 0.5
"""
# The same without the section that Moses does not know.
MODEL = INI.replace("[a-section-of-the-future]\nanything at all = [goes]\n\n", "")

MINIMAL = "[feature]\nDistortion\n[weight]\nDistortion0= 1\n"


@pytest.fixture
def write_ini(tmp_path):
    def write(text):
        path = tmp_path / "moses.ini"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def line_of(text, beginning):
    return next(i for i, line in enumerate(text.split("\n"), 1) if line.startswith(beginning))


def test_what_is_read(write_ini):
    ini = read_moses_ini(write_ini(INI))
    assert ini.sections["mapping"] == ["0 T 0"]
    assert ini.number("distortion-limit", -1) == 6
    assert ini.number("stack", 200) == 200
    assert ini.sections["a-section-of-the-future"] == ["anything at all = [goes]"]
    assert [(f.kind, f.name) for f in ini.features] == [
        ("UnknownWordPenalty", "UnknownWordPenalty0"), ("WordPenalty", "WordPenalty0"),
        ("PhrasePenalty", "PhrasePenalty0"), ("PhraseDictionaryMemory", "TranslationModel0"),
        ("LexicalReordering", "RO"), ("Distortion", "Distortion0"), ("KENLM", "LM0"),
    ]  # fmt: skip
    table = ini.features[3]
    assert table.line == line_of(INI, "PhraseDictionaryMemory")
    assert dict(table.arguments) == {
        "num-features": "4", "path": "table.gz", "input-factor": "0", "output-factor": "0",
    }  # fmt: skip
    assert ini.weights["PhrasePenalty0"] == [0.2]
    assert ini.weights["TranslationModel0"] == [0.2] * 4
    assert ini.weight_lines["LM0"] == line_of(INI, "LM0=")


def test_a_feature_without_a_name_is_numbered(write_ini):
    ini = read_moses_ini(write_ini("[feature]\nDistortion\nDistortion\nKENLM path=x\n"))
    assert [feature.name for feature in ini.features] == ["Distortion0", "Distortion1", "KENLM0"]


def test_weights_are_written_and_nothing_else_changes(write_ini):
    text = with_weights(read_moses_ini(write_ini(INI)), {"LM0": [0.25], "TranslationModel0": [1, -2, 1 / 3, 1e-9]})
    assert text == INI.replace("LM0= 0.5", "LM0= 0.25").replace(
        "TranslationModel0= 0.2 0.2 0.2 0.2", "TranslationModel0= 1 -2 0.333333333 1e-09"
    )
    # No weights, no change.
    assert with_weights(read_moses_ini(write_ini(INI)), {}) == INI


def test_a_comment_goes_on_top(write_ini):
    text = with_weights(read_moses_ini(write_ini(INI)), {"LM0": [0.5]}, "tuned\nBLEU 41.8")
    assert text == f"# tuned\n# BLEU 41.8\n{INI}"
    assert read_moses_ini(write_ini(text)).weights["LM0"] == [0.5]


def test_missing_weights_are_added(write_ini):
    ini = read_moses_ini(write_ini(INI.replace("LM0= 0.5\n", "")))
    again = read_moses_ini(write_ini(with_weights(ini, {"LM0": [0.125]})))
    assert again.weights["LM0"] == [0.125]
    assert len(again.lines) == len(ini.lines) + 1
    ini = read_moses_ini(write_ini("[feature]\nDistortion"))
    text = with_weights(ini, {"Distortion0": [1.5]})
    assert text == "[feature]\nDistortion\n\n[weight]\nDistortion0= 1.5\n"


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), st.data())
def test_weights_survive(workspace, numbers, data):
    path = workspace / "survive.ini"
    path.write_text(INI)
    path.write_text(with_weights(read_moses_ini(str(path)), {"TranslationModel0": numbers}))
    assert read_moses_ini(str(path)).weights["TranslationModel0"] == pytest.approx(numbers, rel=1e-8)


LINES = st.lists(
    st.one_of(
        st.sampled_from(["", "   ", "# [weight]", "[mapping]", "0 T 0", "[ odd section ]", "\x0by\x85z\u2028", "a #b"]),
        st.text(st.characters(codec="utf-8", exclude_characters="\n#["), max_size=12),
    ),
    max_size=10,
)


@given(LINES, st.sampled_from(["\n", "\r\n"]))
def test_any_other_lines_stay(workspace, lines, end):
    text = end.join([*(f"# {line}" for line in lines), "[more]", *lines, INI.replace("\n", end)])
    path = workspace / "lines.ini"
    path.write_bytes(text.encode())
    changed = with_weights(read_moses_ini(str(path)), {"LM0": [0.25]})
    assert changed.replace(f"LM0= 0.25{end}", f"LM0= 0.5{end}") == text


def test_crlf(write_ini):
    ini = read_moses_ini(write_ini(INI.replace("\n", "\r\n")))
    assert ini.weights["LM0"] == [0.5]
    assert ini.features[0].kind == "UnknownWordPenalty"
    assert ini.sections["mapping"] == ["0 T 0"]


def test_other_encodings_are_read(write_ini):
    assert read_moses_ini(write_ini(INI.encode() + b"# caf\xe9\n")).weights["LM0"] == [0.5]


FAULTS = [
    ("[feature]\nDistortion name\n", "moses.ini:2: Distortion: expected key=value, found 'name'"),
    ("[feature]\nDistortion a=1 a=2\n", "moses.ini:2: Distortion: the key a is given twice"),
    ("[feature]\n\nDistortion\nWordPenalty name=Distortion0\n", "moses.ini:4: a second feature with the name"),
    ("[feature]\nDistortion\n[weight]\nDistortion0 = 1\n", "moses.ini:4: expected a feature name with = at its end"),
    ("[feature]\nDistortion\n[weight]\nDistortion0=1\n", "moses.ini:4: expected a feature name with = at its end"),
    ("[feature]\nDistortion\n[weight]\nDistortion0= one\n", "moses.ini:4: Distortion0= a weight is not a finite"),
    (
        "[feature]\nDistortion\n[weight]\nDistortion0= nan\n",
        "moses.ini:4: Distortion0= a weight is not a finite number",
    ),
    ("[feature]\nDistortion\n[weight]\nDistortion0= 1\n\nDistortion0= 2\n", "moses.ini:6: the weights of Distortion0"),
    ("[ttable-file]\n0 0 0 5 t\n[feature]\nDistortion\n", r"moses.ini: \[ttable-file\] is of version 1, \[feat"),
    ("", r"moses.ini: there is no \[feature\] section"),
    ("das ||| the ||| 0.5\n", r"moses.ini: there is no \[feature\] section"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS, ids=[message[:40] for _, message in FAULTS])
def test_faults_name_their_line(write_ini, text, message):
    with pytest.raises(DataError, match=message):
        read_moses_ini(write_ini(text))


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        read_moses_ini(str(tmp_path / "none.ini"))


# Errors of a model whose lines are well formed: (old text, new text, start of the reported line, message).
MODEL_FAULTS = [
    ("TranslationModel0= 0.2 0.2 0.2 0.2", "TranslationModel0= 0.2", "TranslationModel0=", "4 features but 1 weights"),
    ("LM0= 0.5", "LM0= 0.5 0.1", "LM0=", "has 1 features but 2 weights"),
    ("LM0= 0.5\n", "", "KENLM", "no line LM0="),
    ("LM0= 0.5\n", "LM0= 0.5\nLM1= 1\n", "LM1=", "there is no feature LM1 for these weights"),
    ("LM0= 0.5\n", "LM0= 0.5\nLM0_x= 1\n", "LM0_x=", "LM0_x= is a weight of a sparse feature"),
    ("UnknownWordPenalty0= 1", "UnknownWordPenalty0=", "UnknownWordPenalty0=", "has 1 features but 0 weights"),
    ("PhraseDictionaryMemory", "PhraseDictionaryCompact", "PhraseDictionaryCompact", "CompactPT table .table.gz.,"),
    ("PhraseDictionaryMemory", "ProbingPT", "ProbingPT", "name the text table it was made from"),
    ("PhraseDictionaryMemory", "PhraseDictionaryOnDisk", "PhraseDictionaryOnDisk", "OnDisk table"),
    ("\nDistortion\n", "\nDistortion\nOpSequenceModel path=x\n", "OpSequenceModel", "does not know the feature OpSeq"),
    ("\nDistortion\n", "\nDistortion\nDistortion name=D\n", "Distortion name=D", "D: Distortion0 precedes; only"),
    ("\nDistortion\n", "\nDistortion\nSRILM path=x\n", "SRILM", "no line SRILM0="),
    ("input-factor=0", "input-factor=0,1", "PhraseDictionaryMemory", "input-factor=0,1: factors are not supported"),
    (" factor=0", " factor=1", "KENLM", "factor=1: factors are not supported"),
    ("num-features=4 ", "", "PhraseDictionaryMemory", "expected num-features=NUMBER, found None"),
    ("num-features=4 ", "num-features=x ", "PhraseDictionaryMemory", "expected num-features=NUMBER, found 'x'"),
    ("num-features=4 ", "num-features=4 table-limit=-3 ", "PhraseDictionaryMemory", "expected table-limit=NUMBER"),
    ("path=table.gz ", "", "PhraseDictionaryMemory", "expected path=FILE"),
    ("type=wbe-msd", "type=hier-msd", "LexicalReordering name", "'hier' is not supported"),
    ("type=wbe-msd", "type=wbe-mslr", "LexicalReordering name", "its type has 8 features, not 6"),
    ("num-features=6", "num-features=6 default-scores=1,1,1,1,1,1", "LexicalReordering name", "default-scores"),
    ("\nDistortion\n", "\nDistortion tuneable-components=true,false\n", "Distortion tuneable", "1 features but 2"),
    ("KENLM name=LM0 factor=0 path=/models/lm.arpa order=3\n", "", None, r"\[feature\] has no KENLM"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "message"), MODEL_FAULTS, ids=[m[3][:40] for m in MODEL_FAULTS])
def test_faults_of_a_model_name_their_line(write_ini, old, new, line, message):
    assert old in MODEL
    text = MODEL.replace(old, new, 1)
    where = rf"moses.ini:{line_of(text, line)}: " if line else "moses.ini: "
    with pytest.raises(DataError, match=f"{where}.*{message}") as error:
        MosesModel.read(write_ini(text))
    assert "\n" not in str(error.value)


def test_a_reordering_table_for_no_model(write_ini):
    text = "".join(line + "\n" for line in MODEL.split("\n") if not line.startswith(("LexicalReordering", "RO=")))
    with pytest.raises(DataError, match="no LexicalReordering"):
        MosesModel.read(write_ini(text), reordering="other.gz")


def test_a_limit_that_is_no_number(write_ini):
    with pytest.raises(DataError, match=r"\[distortion-limit\]: expected a whole number, found 'six'"):
        MosesModel.read(write_ini(MODEL.replace("6 # words", "six")))


def test_a_model(write_ini, tmp_path):
    model = MosesModel.read(write_ini(MODEL))
    assert model.listed == (
        "LexicalReordering", "Distortion", "LM", "WordPenalty", "PhrasePenalty", "TranslationModel",
    )  # fmt: skip
    assert model.weights.tolist() == [*[0.3] * 6, 0.3, 0.5, -1, 0.2, *[0.2] * 4]
    assert model.tuneable.all()
    assert (model.search.distortion_limit, model.search.table_limit, model.search.stack_size) == (6, 20, 200)
    assert model.table == str(tmp_path / "table.gz")
    assert model.language_models == ("/models/lm.arpa",)
    assert model.paths == [model.table, *model.language_models, str(tmp_path / "ro.gz")]
    assert model.features.unknown_weight == 1
    assert model.named_weights(model.weights)["RO"] == [0.3] * 6
    replaced = MosesModel.read(write_ini(MODEL), "a", "b")
    assert (replaced.table, replaced.reordering) == ("a", "b")


def test_n_best_lists_name_features_in_the_order_of_the_ini(write_ini):
    """Moses lists features with a state first, then the others."""
    head, rest = MODEL.split("[feature]\n")
    lines, weights = rest.split("\n[weight]")
    backwards = "".join(f"{line}\n" for line in reversed(lines.splitlines()))
    model = MosesModel.read(write_ini(f"{head}[feature]\n{backwards}\n[weight]{weights}"))
    assert model.listed == (
        "LM", "Distortion", "LexicalReordering", "TranslationModel", "PhrasePenalty", "WordPenalty",
    )  # fmt: skip
    assert model.weights.tolist() == MosesModel.read(write_ini(MODEL)).weights.tolist()


def test_what_an_ini_may_leave_out(write_ini):
    text = "[feature]\nPhraseDictionaryMemory num-features=2 path=t table-limit=7 input-factor=0 output-factor=0\n"
    text += "KENLM path=l\n[weight]\n"
    text += "PhraseDictionaryMemory0= 1 2\nKENLM0= 3\n"
    model = MosesModel.read(write_ini(text))
    assert model.listed == ("LM", "TranslationModel")
    assert model.weights.tolist() == [0, 3, 0, 0, 1, 2]
    assert model.tuneable.tolist() == [False, True, False, False, True, True]
    assert (model.search.distortion_limit, model.search.table_limit) == (-1, 7)
    assert model.features.unknown_weight == 0
    assert model.reordering is None
    assert MosesModel.read(write_ini(text + "[feature]\nUnknownWordPenalty\n")).features.unknown_weight == 1


def test_what_tuning_may_change(write_ini):
    text = MODEL.replace("PhraseDictionaryMemory", "PhraseDictionaryMemory tuneable-components=true,false,true,false")
    model = MosesModel.read(write_ini(text.replace("\nDistortion\n", "\nDistortion tuneable=false\n")))
    assert model.tuneable.tolist() == [*[True] * 6, False, True, True, True, True, False, True, False]


def test_a_reordering_table_may_be_named_without_its_suffix(write_ini, tmp_path):
    (tmp_path / "ro.gz").write_bytes(b"")
    model = MosesModel.read(write_ini(MODEL.replace("path=ro.gz", "path=ro")))
    assert model.reordering == str(tmp_path / "ro.gz")


def test_search_limits_are_those_of_the_ini(write_ini):
    text = "[stack]\n50\n[search-algorithm]\n1\n[cube-pruning-pop-limit]\n70\n[beam-threshold]\n0.01\n" + MODEL
    search = MosesModel.read(write_ini(text)).search
    assert (search.algorithm, search.stack_size, search.pop_limit) == ("cube", 50, 70)
    assert (search.beam_threshold, search.distortion_limit, search.table_limit) == (0.01, 6, 20)
    plain = MosesModel.read(write_ini(MODEL)).search
    assert (plain.algorithm, plain.stack_size, plain.pop_limit, plain.beam_threshold) == ("stack", 200, 1000, 1e-5)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("[drop-unknown]\n1\n", r"moses.ini:2: \[drop-unknown\] 1: .* not support"),
        ("[xml-input]\nexclusive\n", r"\[xml-input\] exclusive: .* not support"),
        ("[search-algorithm]\n3\n", r"\[search-algorithm\] 3 is not supported"),
        ("[stack]\n0\n", r"moses.ini:2: \[stack\] 0: .* not supported"),
        ("[beam-threshold]\nsmall\n", r"\[beam-threshold\]"),
    ],
)
def test_what_would_change_translations_is_not_ignored(write_ini, section, message):
    with pytest.raises(DataError, match=message):
        MosesModel.read(write_ini(section + MODEL))


def test_harmless_values_are_accepted(write_ini):
    MosesModel.read(
        write_ini("[xml-input]\npass-through\n[drop-unknown]\nfalse\n[inputtype]\n0\n[mark-unknown]\n" + MODEL)
    )


def test_features_that_are_not_tuneable_are_weighed_but_not_listed(write_ini):
    model = MosesModel.read(write_ini(MODEL.replace("\nDistortion\n", "\nDistortion tuneable=false\n")))
    assert "Distortion" not in model.listed
    assert model.weights[model.features.slices["Distortion"]].tolist() == [0.3]
    assert "Distortion0" not in model.named_weights(model.weights)


def test_bytes_that_are_no_utf8_come_back(tmp_path):
    data = INI.replace("# words", "# W\xf6rter").encode("latin-1")
    path = tmp_path / "moses.ini"
    path.write_bytes(data)
    ini = read_moses_ini(str(path))
    assert with_weights(ini, {"LM0": [0.5]}).encode(*ENCODING) == data


def test_in_another_folder_relative_paths_become_absolute(tmp_path, write_ini):
    ini = read_moses_ini(write_ini(INI))
    assert moved_to(ini, str(tmp_path)) is ini
    lines = moved_to(ini, str(tmp_path / "elsewhere")).lines
    assert f"path={tmp_path / 'table.gz'} " in lines[ini.features[3].line - 1]
    assert lines[ini.features[4].line - 1].endswith(f"path={tmp_path / 'ro.gz'} input-factor=0 output-factor=0")
    assert "path=/models/lm.arpa " in lines[ini.features[6].line - 1]


def test_a_zero_byte_is_refused(write_ini):
    with pytest.raises(DataError, match=r"moses.ini:19: TranslationModel0: a zero byte"):
        read_moses_ini(write_ini(INI.replace("table.gz", "table\0gz")))
    assert read_moses_ini(write_ini(INI.replace("# per phrase", "# per \0 phrase"))).features


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("settings")
    moses_settings.write_files(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


# Settings that change the translations or scores of a real Moses, or stop it; those with `same` are supported.
SETTINGS = [
    ("same", moses_settings.INI),
    ("same", moses_settings.with_section("mark-unknown", "1")),
    ("same", moses_settings.with_section("mark-unknown", "1", "[unknown-word-prefix]", "<")),
    ("same", moses_settings.with_section("mark-unknown", "1", "[unknown-word-suffix]", ">")),
    ("same", moses_settings.with_section("print-alignment-info", "true")),
    ("same", moses_settings.with_section("max-phrase-length", "1")),
    ("same", moses_settings.with_section("max-phrase-length", "2")),
    ("same", moses_settings.with_section("max-trans-opt-per-coverage", "1")),
    ("same", moses_settings.with_section("weight-overwrite", "TM= x 2 LM= 0.1")),
    ("same", moses_settings.with_section("drop-unknown")),
    ("same", moses_settings.with_section("mbr-scale", "0.1", "[minimum-bayes-risk]", "0")),
    ("refused", moses_settings.with_section("minimum-bayes-risk", "1")),
    ("refused", moses_settings.with_section("monotone-at-punctuation", "1")),
    ("refused", moses_settings.with_section("early-distortion-cost", "1")),
    ("refused", moses_settings.with_section("report-segmentation", "false")),
    ("refused", moses_settings.with_section("decoding-graph-backoff", "1")),
    ("refused", moses_settings.with_section("stack", "0")),
    ("refused", moses_settings.with_section("beam-threshold", "-1", "[stack]", "2")),
    ("refused", moses_settings.with_section("beam-threshold", "1", "[stack]", "1")),
    ("refused", moses_settings.with_section("search-algorithm", "1", "[cube-pruning-pop-limit]", "0")),
    ("refused", moses_settings.with_section("distortion-limit", "-2", "[search-algorithm]", "1")),
    ("refused", moses_settings.INI.replace("Distortion0= 0.1\n", "")),
    ("both stop", moses_settings.INI.replace("UnknownWordPenalty\n", "").replace("UnknownWordPenalty0= 1\n", "")),
    ("same", moses_settings.INI.replace("UnknownWordPenalty0= 1\n", "")),
    ("both stop", moses_settings.with_section("inputtype", "1")),
    ("both stop", moses_settings.with_section("distorsion-limit", "0")),
    ("both stop", moses_settings.with_section("ttable-limit", "1")),
    ("both stop", moses_settings.with_section(" stack", "1")),
    ("both stop", moses_settings.with_argument("PhraseDictionaryMemory", "tabel-limit=1")),
    ("both stop", moses_settings.with_argument("LexicalReordering", "tuneable=true")),
    ("both stop", moses_settings.with_argument("KENLM", "input-factor=0")),
    ("same", moses_settings.with_argument("KENLM", "load=lazy")),
    ("same", moses_settings.with_argument("PhraseDictionaryMemory", "table-limit=1")),
]  # fmt: skip


@pytest.mark.requires_moses
@pytest.mark.parametrize(("expected", "ini"), SETTINGS, ids=[ini.replace("\n", " ")[-40:] for _, ini in SETTINGS])
def test_a_real_moses_has_the_same_or_the_setting_is_refused(model, moses, expected, ini):
    moses_result, our_result = moses_settings.of_moses(moses(), ini), moses_settings.of_ours(ini)
    assert moses_settings.verdict(moses_result, our_result) == expected
    if our_result.lines is None:
        assert re.match(r"phrasetool: ours.ini:\d+: ", our_result.message)


SENTENCE_BEGINS = "a <s> b\nc <s> d b a\n<s> a c b\nb c <s> d\nd , <s> c a b\n<s> <s> a\n"


@pytest.mark.requires_moses
@pytest.mark.parametrize("pops", ["2", "5", "1000"])
def test_a_word_that_begins_sentences_is_estimated_as_by_moses(moses, monkeypatch, tmp_path, pops):
    """The estimate decides when the word is translated: cube pruning puts it last, although that is worse."""
    moses_settings.write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(SENTENCE_BEGINS)
    ini = moses_settings.with_section("search-algorithm", "1", "[cube-pruning-pop-limit]", pops)
    moses_result, our_result = moses_settings.of_moses(moses(), ini), moses_settings.of_ours(ini)
    assert moses_settings.verdict(moses_result, our_result) == "same"


def test_more_options_of_several_tables_than_moses_takes_are_refused(monkeypatch, tmp_path):
    moses_settings.write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "second").write_text(
        "".join(f"a ||| v{i} ||| 0.5 0.5 ||| 0-0 ||| 1 1 1 ||| |||\n" for i in range(4999))
    )
    second = "PhraseDictionaryMemory name=TM2 num-features=2 path=second input-factor=0 output-factor=0 table-limit=0\n"
    ini = moses_settings.INI.replace("0 T 0\n", "0 T 0\n1 T 1\n").replace("KENLM", second + "KENLM")
    ini = ini.replace("TM= 0.3 0.4\n", "TM= 0.3 0.4\nTM2= 0.3 0.4\n")
    assert re.match(
        r"phrasetool: ours.ini:14: 5,002 options for 'a' from several phrase tables; Moses takes the best 5,000",
        moses_settings.of_ours(ini).message,
    )
    assert moses_settings.of_ours(ini.replace("table-limit=0", "table-limit=20")).lines


@pytest.mark.requires_moses
def test_every_section_of_a_real_moses_is_known(moses):
    outcome = subprocess.run([moses(), "--help"], capture_output=True, text=True, timeout=60, check=False)
    switches = set(re.findall(r"--([a-z][a-z0-9-]+)", outcome.stderr + outcome.stdout))
    assert len(switches) > 150
    assert switches <= set(known_sections())


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("[distorsion-limit]\n0\n", r"i:6: there is no section \[distorsion-limit\]; Moses stops at it: is it \[disto"),
        ("[nothing-like-it]\n0\n", r"i:6: there is no section \[nothing-like-it\]; Moses stops at it$"),
        ("[dl]\n0\n", r"i:6: \[dl\]: Moses ignores this short name in an ini; the section is \[distortion-limit\]"),
        ("[ttable-limit]\n20\n", r"i:6: \[ttable-limit\] is of version 1"),
        ("[inputtype]\n2\n", r"i:6: \[inputtype\] 2: this command does not support it"),
    ],
)
def test_messages_name_the_section_and_its_line(section, message):
    with pytest.raises(DataError, match=message):
        check_sections(parse_moses_ini("i", MINIMAL + section))


@pytest.mark.parametrize("section", ["[mark-unknown]\n1\n", "[weight-overwrite]\nLM= 5\n", "[inputtype]\n1\n"])
def test_commands_that_measure_refuse_what_they_would_measure_otherwise(model, section):
    (model / "measured.ini").write_text(moses_settings.INI + section)
    (model / "target").write_text(moses_settings.TEXT)
    files = ["--moses-ini", "measured.ini"]
    commands = [
        ["tune", *files, "--dev", "text", "target", "-o", "tuned.ini"],
        ["force-decode", *files, "text", "target", "-o", "pairs"],
        ["prune", "table", *files, "--method", "count", "--max-bleu-loss", "0.5", "--dev", "text", "target", "-o", "p"],
    ]
    for command in commands:
        outcome = run_inside(*command)
        assert outcome.code == 1
        assert section.split("\n")[0] in outcome.message
    assert not {"tuned.ini", "pairs", "p"} & {path.name for path in model.iterdir()}
