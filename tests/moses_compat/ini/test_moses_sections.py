"""Settings of a moses.ini: supported as a real Moses has them, or refused by their names, but never passed over."""

import re
import subprocess

import pytest

from moses_compat.ini.moses_sections import check_sections, known_sections
from moses_compat.ini.reading import parse_moses_ini
from phrasetool.errors import DataError
from tests import moses_settings
from tests.commands import run_inside

MINIMAL = "[feature]\nDistortion\n[weight]\nDistortion0= 1\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("settings")
    moses_settings.write_files(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


# What changes the translations or scores of a real Moses, and what it stops at; `same` is supported.
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
    theirs, ours = moses_settings.of_moses(moses(), ini), moses_settings.of_ours(ini)
    assert moses_settings.verdict(theirs, ours) == expected
    if ours.lines is None:
        assert re.match(r"phrasetool: ours.ini:\d+: ", ours.message)


SENTENCE_BEGINS = "a <s> b\nc <s> d b a\n<s> a c b\nb c <s> d\nd , <s> c a b\n<s> <s> a\n"


@pytest.mark.requires_moses
@pytest.mark.parametrize("pops", ["2", "5", "1000"])
def test_a_word_that_begins_sentences_is_estimated_as_by_moses(moses, monkeypatch, tmp_path, pops):
    """Its estimate decides when it is translated: cube pruning puts it last, although that is worse."""
    moses_settings.write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(SENTENCE_BEGINS)
    ini = moses_settings.with_section("search-algorithm", "1", "[cube-pruning-pop-limit]", pops)
    theirs, ours = moses_settings.of_moses(moses(), ini), moses_settings.of_ours(ini)
    assert moses_settings.verdict(theirs, ours) == "same"


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
    done = subprocess.run([moses(), "--help"], capture_output=True, text=True, timeout=60, check=False)
    switches = set(re.findall(r"--([a-z][a-z0-9-]+)", done.stderr + done.stdout))
    assert len(switches) > 150
    assert switches <= set(known_sections())


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("[distorsion-limit]\n0\n", r"i:6: there is no section \[distorsion-limit\]; Moses stops at it: is it \[disto"),
        ("[nothing-like-it]\n0\n", r"i:6: there is no section \[nothing-like-it\]; Moses stops at it$"),
        ("[dl]\n0\n", r"i:6: \[dl\]: Moses passes over this short name in an ini; the section is \[distortion-limit\]"),
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
        done = run_inside(*command)
        assert done.code == 1
        assert section.split("\n")[0] in done.message
    assert not {"tuned.ini", "pairs", "p"} & {path.name for path in model.iterdir()}
