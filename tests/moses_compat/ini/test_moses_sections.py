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
        ["tune", *files, "--source", "text", "-r", "target", "-o", "tuned.ini"],
        ["force-decode", *files, "text", "target", "-o", "pairs"],
        ["prune", "table", *files, "--method", "count", "--max-bleu-loss", "0.5", "--dev", "text", "target", "-o", "p"],
    ]
    for command in commands:
        done = run_inside(*command)
        assert done.code == 1
        assert section.split("\n")[0] in done.message
    assert not {"tuned.ini", "pairs", "p"} & {path.name for path in model.iterdir()}
