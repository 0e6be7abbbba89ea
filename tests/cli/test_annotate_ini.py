"""`phrasetool annotate --moses-ini` and `phrasetool moses-ini INI`: a table and the ini that refers to it."""

import gzip
import os
import random

import numpy as np
import pytest

from moses_compat.engine.decoder_tables import InputPhrases
from moses_compat.engine.model import MosesModel
from moses_compat.ini.reading import read_moses_ini
from phrasetool.phrase_encoder.kinds import Rae
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.smt.decoder.translator import Translator
from phrasetool.vocabulary import Vocabulary
from tests import naive
from tests.commands import read, run_inside, write
from tests.conftest import random_parameters
from tests.moses_compat.ini.ini_examples import VERSION_1, VERSION_2
from tests.n_best_lists import read_n_best
from tests.tables import MALFORMED, TABLES

INIS = {"1": VERSION_1, "2": VERSION_2}
TABLE = TABLES["lattice"]  # two scores


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a table, and with an ini of each version that refers to it."""
    write(tmp_path / "small.gz", TABLE)
    for version, text in INIS.items():
        write(tmp_path / f"{version}.ini", text.encode())
    return tmp_path


def annotate(folder, model_folder, version, *options):
    return run_inside(
        "annotate", folder / "small.gz", "-m", model_folder, "-o", folder / "more.gz",
        "--moses-ini", folder / f"{version}.ini", "--moses-ini-out", folder / "more.ini", *options,
    )  # fmt: skip


def names(folder):
    return sorted(path.name for path in folder.iterdir())


BEFORE = ["1.ini", "2.ini", "small.gz"]


@pytest.mark.parametrize("weight", ["0", "-0.125"])
def test_version_2(folder, model_folder, weight):
    outcome = annotate(folder, model_folder, "2", "--weight", weight)
    assert outcome.code == 0
    assert f"names {folder / 'more.gz'} as TranslationModel0, with 4 scores instead of 2" in outcome.err
    assert "num-features=4 in moses.ini" not in outcome.err
    assert naive.cut_columns(read(folder / "more.gz"), 2) == TABLE
    assert read(folder / "more.ini").decode() == VERSION_2.replace(
        "num-features=2 path=small.gz", f"num-features=4 path={folder / 'more.gz'}"
    ).replace("0.0639497231451392\t+1e-1", f"0.0639497231451392\t+1e-1 {weight} {weight}")
    assert names(folder) == sorted([*BEFORE, "more.gz", "more.ini"])


def test_version_1_and_several_models(folder, model_folder):
    assert annotate(folder, model_folder, "1", "-m", model_folder, "-q").err == ""
    assert naive.cut_columns(read(folder / "more.gz"), 4) == TABLE
    assert read(folder / "more.ini").decode() == VERSION_1.replace(
        "0 0 0 2  small.gz", f"0 0 0 6  {folder / 'more.gz'}"
    ).replace("# backward\n", "# backward\n0\n0\n0\n0\n")


def test_another_folder_and_the_default_output(folder, model_folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "new").mkdir()
    outcome = run_inside("annotate", "small.gz", "-m", model_folder, "--moses-ini", "2.ini", "--moses-ini-out", "new/i")
    assert outcome.code == 0
    assert read_moses_ini("new/i").features[3].arguments["path"] == str(folder / "small.annotated.gz")
    # `fixed` does not exist in the working directory, so its path becomes absolute.
    assert "path=fixed\n" not in (folder / "new/i").read_text()


def test_a_table_without_entries(folder, model_folder):
    write(folder / "small.gz", b"")
    assert annotate(folder, model_folder, "2").message.endswith(
        "is empty; expected a phrase table; --allow-empty continues anyway"
    )
    assert names(folder) == BEFORE
    assert annotate(folder, model_folder, "2", "--allow-empty").code == 0
    assert read_moses_ini(str(folder / "more.ini")).weights["TranslationModel0"][2:] == [0, 0]


def test_both_or_neither(folder, model_folder):
    """If an entry late in the table is invalid, neither file is written, and existing files are kept."""
    write(folder / "small.gz", TABLE + b"das ||| the ||| 1 nan\n")
    failed = annotate(folder, model_folder, "2", "--block-bytes", "1")
    assert failed.code == 1
    assert failed.message.startswith(f"phrasetool: {folder / 'small.gz'}:4: ")
    assert names(folder) == BEFORE
    write(folder / "more.ini", b"old")
    write(folder / "more.gz", b"old")
    assert annotate(folder, model_folder, "2").code == 1
    assert (read(folder / "more.ini"), read(folder / "more.gz")) == (b"old", b"old")
    assert names(folder) == sorted([*BEFORE, "more.gz", "more.ini"])


def test_the_ini_is_renamed_last(folder, model_folder, monkeypatch):
    renamed = []

    def replace(source, target, real=os.replace):
        renamed.append(os.path.basename(target))
        if target.endswith(failing):
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr("moses_compat.files.streams.os.replace", replace)
    failing = "more.gz"
    failed = annotate(folder, model_folder, "2")
    assert failed.code == 1
    assert "the disk is full" in failed.message
    assert (renamed, names(folder)) == (["more.gz"], BEFORE)
    failing = "nothing"
    assert annotate(folder, model_folder, "2").code == 0
    assert renamed[1:] == ["more.gz", "more.ini"]


BAD = [
    # Name of the invalid file, its text, and the message.
    ("2.ini", VERSION_2.replace("path=small.gz", "path=big.gz"), "none of its phrase tables is"),
    ("2.ini", VERSION_2.replace("path=fixed", "path=small.gz"), "several of its phrase tables are"),
    ("2.ini", VERSION_2.replace("Memory name=Tr", "Compact name=Tr"), r"2.ini:16: TranslationModel0 is a CompactPT"),
    ("2.ini", VERSION_2.replace("num-features=2", "num-features=3"), "2.ini:16: TranslationModel0 has num-features=3"),
    ("2.ini", VERSION_2.replace(" TranslationModel0=", "#"), "2.ini:16: [weight] has no line TranslationModel0="),
    ("2.ini", VERSION_2.replace("LM0", "L_M"), "L_M: tuning treats a name with an underscore"),
    ("2.ini", VERSION_2.replace("name=Fixed", "name=LM0"), "a second feature with the name LM0"),
    ("2.ini", "das ||| the ||| 1", "there is no [feature] section"),
    ("small.gz", "das ||| the ||| 1\n", "2.ini:16: TranslationModel0 has num-features=2, but the entries of the table "
     "have 1 scores"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "text", "message"), BAD, ids=range(len(BAD)))
def test_checks_come_before_any_work(folder, model_folder, file, text, message):
    # The model does not exist, and the table is not read as far as its malformed lines.
    write(folder / "small.gz", MALFORMED)
    write(folder / file, text.encode())
    failed = annotate(folder, folder / "no-model", "2")
    assert failed.code == 1
    assert message in failed.message
    assert names(folder) == BEFORE


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--moses-ini", "2.ini"], 2, "must be given together"),
        (["--moses-ini-out", "x.ini"], 2, "must be given together"),
        (["--moses-ini", "2.ini", "--moses-ini-out", "x.ini", "--scale", "raw"], 2, "--scale raw is not for Moses"),
        (["--weight", "0.5"], 2, "--weight is for the ini"),
        (["--moses-ini", "2.ini", "--moses-ini-out", "x.ini", "--weight", "nan"], 2, "'nan' is not a finite number"),
        (["--moses-ini", "2.ini", "--moses-ini-out", "-"], 2, "--moses-ini-out must be a file"),
        (["--moses-ini", "2.ini", "--moses-ini-out", "x.ini", "-o", "-"], 2, "--output must be a file"),
        (["--moses-ini", "2.ini", "--moses-ini-out", "x.ini", "-o", "/dev/stdout"], 2, "--output must be a file"),
        (["--moses-ini", "2.ini", "--moses-ini-out", "x.ini", "-o", "/dev/fd/2"], 2, "--output must be a file"),
        (["--json", "-", "-o", "/dev/stdout"], 2, "--json and the output both go to standard output"),
        (["--moses-ini", "2.ini", "--moses-ini-out", "2.ini"], 1, "2.ini: the output is the input 2.ini"),
        (["--moses-ini", "2.ini", "--moses-ini-out", "small.gz"], 1, "the output is the input small.gz"),
        (["--moses-ini", "2.ini", "--moses-ini-out", "x", "-o", "x"], 1, "two outputs go to one file"),
        (["--moses-ini", "2.ini", "--moses-ini-out", "fixed"], 1, "fixed: the output is the input"),
        (["--moses-ini", "none.ini", "--moses-ini-out", "x.ini"], 1, "none.ini: No such file"),
        (["--moses-ini", "2.ini", "--moses-ini-out", "no/folder/x.ini"], 1, "no/folder/x.ini: cannot write"),
    ],
)
def test_bad_usage(folder, model_folder, monkeypatch, options, code, message):
    monkeypatch.chdir(folder)
    failed = run_inside("annotate", "small.gz", "-m", model_folder, *options)
    assert failed.code == code
    assert message in failed.err
    assert names(folder) == BEFORE


def test_an_ini_cannot_refer_to_standard_input(folder, model_folder):
    failed = run_inside("annotate", "-", "-m", model_folder, "-o", folder / "o", "--moses-ini", folder / "2.ini",
                        "--moses-ini-out", folder / "x", stdin=TABLE)  # fmt: skip
    assert failed.code == 2
    assert "TABLE must be a file" in failed.err
    assert names(folder) == BEFORE


@pytest.mark.parametrize("version", INIS)
def test_moses_ini_with_the_same_table_changes_nothing(folder, version):
    outcome = run_inside("moses-ini", folder / f"{version}.ini", "--table", folder / "small.gz", "-o", folder / "x.ini")
    assert outcome.code == 0
    assert read(folder / "x.ini") == read(folder / f"{version}.ini")


@pytest.mark.parametrize(("version", "name"), [("1", "TranslationModel1"), ("2", "Fixed")])
def test_moses_ini_replaces_the_named_table(folder, version, name):
    table = write(folder / "rich", b"das ||| the ||| 1 0.5 0.25\n")
    command = ["moses-ini", folder / f"{version}.ini", "--table", table, "-o", folder / "x.ini"]
    failed = run_inside(*command)
    assert failed.code == 1
    assert "several phrase tables could be meant: " in failed.message
    assert failed.message.endswith("choose one with --name")
    assert "there is no phrase table x" in run_inside(*command, "--name", "x").message
    assert names(folder) == sorted([*BEFORE, "rich"])
    assert run_inside(*command, "--name", name, "--weight", "0.5").code == 0
    after = read_moses_ini(str(folder / "x.ini"))
    name = name.replace("TranslationModel", "PhraseDictionaryMemory")
    assert after.weights[name] == [1, 0.5, 0.5]
    changed = next(feature for feature in after.features if feature.name == name)
    assert changed.arguments["path"] == str(table)
    assert changed.arguments["num-features"] == "3"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["2.ini", "--table", "poor", "--name", "TranslationModel0"], 1, "2.ini:16: TranslationModel0 has 2 scores"),
        (["2.ini", "--table", "small.gz", "--weight", "inf"], 2, "'inf' is not a finite number"),
        (["2.ini", "--table", "small.gz", "-o", "2.ini"], 1, "the output is the input 2.ini"),
        (["--table", "small.gz", "--lm", "x", "--name", "A"], 2, "--name picks one of the phrase tables of INI"),
        (["2.ini", "--table", "with blank", "--name", "Fixed"], 1, "with blank: a path in a moses.ini can"),
    ],
)
def test_moses_ini_errors(folder, monkeypatch, arguments, code, message):
    monkeypatch.chdir(folder)
    write(folder / "poor", b"das ||| the ||| 1\n")
    write(folder / "with blank", b"das ||| the ||| 1 1\n")
    failed = run_inside("moses-ini", *arguments, *(["-o", "x.ini"] if "-o" not in arguments else []))
    assert failed.code == code
    assert message in failed.err
    assert names(folder) == sorted([*BEFORE, "poor", "with blank"])


# The reference model: its table with two more scores, and Moses' n-best lists scored with and without them.
SENTENCES = 200


@pytest.fixture(scope="module")
def annotated_run(reference, tmp_path_factory):
    """Return translators (reference; annotated, weights 0 and 0.5), sentences, Moses' candidates and settings."""
    folder = tmp_path_factory.mktemp("annotated-run")
    text = b"".join((reference.parent / "test_2016_flickr.de").read_bytes().splitlines(True)[:SENTENCES])
    # The entries that these sentences can use, unchanged.
    phrases = set()
    for line in text.split(b"\n"):
        words = line.split()
        phrases |= {b" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, min(i + 7, len(words)) + 1)}
    with gzip.open(reference / "phrase-table.gz") as lines:
        write(folder / "table.gz", b"".join(line for line in lines if line.split(b" |||", 1)[0] in phrases))
    words = [b"<unk>", *sorted(set(text.split()))]
    rng = random.Random(1)
    targets = [b"<unk>", *sorted({word for line in rng.sample(read(folder / "table.gz").split(b"\n")[:-1], 3000)
                                  for word in line.split(b" ||| ")[1].split()})]  # fmt: skip
    vocabularies = Vocabulary(words, range(len(words))), Vocabulary(targets, range(len(targets)))
    parameters = random_parameters(len(words), 10, 1), random_parameters(len(targets), 10, 2)
    BilingualModel(*vocabularies, *parameters, Rae(), {"loss": "none"}).save(folder / "model")
    ini = (reference / "moses.ini").read_bytes().replace(b"path=./phrase-table.gz", b"path=table.gz")
    write(folder / "moses.ini", ini.replace(b"path=./", f"path={reference}/".encode()))
    models = [MosesModel.read(str(folder / "moses.ini"))]
    for weight in ("0", "0.5"):
        new_ini = folder / f"{weight}.ini"
        outcome = run_inside("annotate", folder / "table.gz", "-m", folder / "model", "-o", folder / f"{weight}.gz",
                             "-q", "--moses-ini", folder / "moses.ini", "--moses-ini-out", new_ini, "--weight", weight,
                             "--force")  # fmt: skip
        # The model is random.
        assert outcome.code == 0
        assert "hardly better than chance" in outcome.message
        models.append(MosesModel.read(str(new_ini)))
    translators = [model.load(text)[0] for model in models[:2]]
    # The contents of the annotated tables do not depend on the weight.
    assert read(folder / "0.gz") == read(folder / "0.5.gz")
    zero, half = translators[1], models[2]
    translators.append(
        Translator(zero.table, zero.language_model, half.features, half.weights, half.search.table_limit)
    )
    path = reference / "test_2016_flickr.first300.nbest50.gz"
    candidates = [candidate for candidate in read_n_best(str(path)) if candidate.sentence < SENTENCES]
    return translators, InputPhrases.of(text).sentences, candidates, models[0].search


def scores_of(translator, sentences, candidates):
    """Return feature values and model scores of Moses' derivations."""
    table, entries = translator.table, {}
    for entry, number in enumerate(table.entry_sources.tolist()):
        first, last = table.index.offsets[number : number + 2]
        words = table.source_symbols.join(table.index.words[first:last])
        entries[words, tuple(table.targets[entry].tolist())] = entry
    steps, offsets = [], [0]
    for candidate in candidates:
        sentence = sentences[candidate.sentence]
        for first, last, begin, end in candidate.spans:
            words = table.source_symbols.join(sentence[first : last + 1])
            target = tuple(map(table.target_symbols.id, candidate.words[begin : end + 1]))
            steps.append((entries[words, target], first, last))
        offsets.append(len(steps))
    rows = np.array(steps, np.int32).T
    values = translator.score_steps(np.array(offsets), rows)
    copies = np.add.reduceat(table.copies[rows[0]], offsets[:-1], dtype=int)
    return values, values @ translator.weights - 100 * copies


@pytest.mark.requires_reference
def test_weight_0_changes_no_score_of_the_reference_n_best_lists(annotated_run):
    (before, zero, half), sentences, candidates, _ = annotated_run
    assert len(candidates) > 7000
    assert [len(translator.weights) for translator in (before, zero, half)] == [14, 16, 16]
    values, totals = scores_of(before, sentences, candidates)
    assert np.abs(totals - [candidate.total for candidate in candidates]).max() < 1e-3
    annotated_values, annotated_totals = scores_of(zero, sentences, candidates)
    # The old scores are bit-identical; the new ones are present, but have no effect at weight 0.
    assert (annotated_values[:, :-2] == values).all()
    assert (annotated_values[:, -2:] < 0).all()
    np.testing.assert_allclose(annotated_totals, totals, rtol=0, atol=1e-12)
    expected = totals + 0.5 * annotated_values[:, -2:].sum(axis=1)
    np.testing.assert_allclose(scores_of(half, sentences, candidates)[1], expected, rtol=0, atol=1e-9)


@pytest.mark.requires_reference
def test_weight_0_changes_no_translation(annotated_run):
    translators, sentences, _, options = annotated_run
    collected = []
    for translator in translators:
        results = list(translator.translate_all(sentences.select(np.arange(40)), options))
        collected.append([(translator.text(result), float(result.steps.scores[0])) for result in results])
    assert collected[0] == collected[1]
    assert collected[0] != collected[2]
