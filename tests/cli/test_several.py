"""Commands with an ini of two phrase tables and two language models, one of which is a binary file of KenLM."""

import json
import random
import re
from pathlib import Path

import kenlm
import pytest
import sacrebleu

from moses_compat.ini.reading import read_moses_ini
from tests import naive_decoder as naive
from tests.cli.test_prune_budget import INI as BUDGET_INI
from tests.cli.test_prune_budget import made_up
from tests.commands import read, run_inside, write
from tests.decoder_models import random_arpa, random_model, random_sentence, write_model
from tests.n_best_lists import read_n_best

GOLDEN = Path(__file__).parents[1] / "golden/kenlm"
NO_PRUNING = ("--beam-threshold", "0", "--stack", "2000")


class Example:
    """A model, in files and for the naive decoder, and a text that it can translate."""

    def __init__(self, folder):
        arpa = write(folder / "second.arpa", random_arpa(random.Random(1)))
        models = [GOLDEN / "model.probing", arpa]
        rng = random.Random(12)
        self.sentences = [random_sentence(rng, size) for size in (4, 3, 0, 4, 1, 5)]
        words = self.sentences[0] + self.sentences[5]
        self.model = random_model(rng, words, [kenlm.Model(str(path)) for path in models], tables=2)
        # One entry a pair, because reordering tables and forced decoding do not distinguish entries of the same pair.
        self.model.entries = list({(entry.source, entry.target): entry for entry in self.model.entries}.values())
        self.ini = write_model(self.model, folder / "model", *models)
        self.text = write(folder / "text", lines(self.sentences))

    def best(self):
        translations = []
        for sentence in self.sentences:
            derivations = naive.derivations(self.model, sentence)
            translations.append(naive.target(max(derivations, key=lambda d: naive.score(self.model, d))))
        return lines(translations)

    def names(self):
        return [name if name[-1].isdigit() else f"{name}0" for name in self.model.weights]

    def changed(self, old, new):
        """Write a changed ini to the same folder, and return its path."""
        text = self.ini.read_text()
        assert old in text
        return write(self.ini.parent / "changed.ini", text.replace(old, new).encode())


def lines(sentences):
    return b"".join(b" ".join(sentence) + b"\n" for sentence in sentences)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return Example(tmp_path_factory.mktemp("several"))


def decode(ini, *arguments):
    return run_inside("decode", "--moses-ini", ini, "-q", *arguments)


@pytest.mark.parametrize("search", ["stack", "cube"])
def test_decode(example, tmp_path, search):
    outputs = []
    for threads in (1, 2):
        listing = tmp_path / f"list{threads}"
        limit = ("--pop-limit", 1000000) if search == "cube" else ()
        options = ("--search", search, *limit, "--n-best-list", listing, 5, "--threads", threads)
        outcome = decode(example.ini, example.text, *NO_PRUNING, *options)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out == example.best()
        outputs.append(read(listing))
    assert outputs[0] == outputs[1]
    for candidate in read_n_best(str(tmp_path / "list1")):
        assert list(candidate.features) == example.names()
        values = dict(zip(example.model.weights, candidate.features.values(), strict=True))
        assert {name: len(v) for name, v in values.items()} == {n: len(w) for n, w in example.model.weights.items()}


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("form", ["probing", "trie"])
def test_binary_language_models_give_the_scores_of_the_arpa_form(example, tmp_path, form, alone):
    text = example.ini.read_text()
    if alone:
        text = re.sub(r"KENLM name=LM1.*\n|LM1=.*\n", "", text)
    lists = []
    for name in ("arpa", form):
        ini = write(example.ini.parent / f"{name}.ini", text.replace("model.probing", f"model.{name}").encode())
        outcome = decode(ini, example.text, "--n-best-list", tmp_path / "n", 9)
        assert (outcome.code, outcome.err) == (0, "")
        lists.append(list(read_n_best(str(tmp_path / "n"))))
    for candidate, expected in zip(*lists, strict=True):
        assert candidate.words == expected.words
        assert candidate.total == pytest.approx(expected.total, abs=1e-4)


def test_force_decode(example, tmp_path):
    source = write(tmp_path / "source", lines(example.sentences))
    target = write(tmp_path / "target", example.best())
    outcome = run_inside("force-decode", "--moses-ini", example.ini, source, target, "-o", tmp_path / "pairs",
                         "--distortion-limit", -1, "--json", "-")  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["reached"] > 0
    known = {(b" ".join(entry.source), b" ".join(entry.target)): entry.table for entry in example.model.entries}
    pairs = [tuple(line.split(b" ||| ")[:2]) for line in read(tmp_path / "pairs").splitlines()]
    assert {known[pair] for pair in pairs} == {0, 1}


def test_tune_writes_each_weight_by_its_name(example, tmp_path):
    reference = write(tmp_path / "reference", example.best())
    source = write(tmp_path / "source", lines(example.sentences))
    outcome = run_inside("tune", "--moses-ini", example.ini, "--dev", source, reference, "--iterations", 2,
                         "--n-best-size", 20, "--force", "-q", "-o", tmp_path / "tuned.ini", "--json",
                         tmp_path / "json")  # fmt: skip
    assert outcome.code == 0, outcome.err
    before, after = read_moses_ini(str(example.ini)), read_moses_ini(str(tmp_path / "tuned.ini"))
    weights = json.loads(read(tmp_path / "json"))["weights"]
    assert list(weights) == example.names()
    for name, values in weights.items():
        assert after.weights[name] == pytest.approx(values, rel=1e-8)
    assert {name: len(values) for name, values in before.weights.items()} == {
        name: len(values) for name, values in after.weights.items()
    }
    assert [line.kind for line in after.features] == [line.kind for line in before.features]
    assert decode(tmp_path / "tuned.ini", example.text).code == 0


def test_a_loss_of_bleu_for_one_table(tmp_path):
    """The other table is not pruned; BLEU is that of both tables together."""
    table, source, target, arpa = made_up(random.Random(4))
    ini = BUDGET_INI.replace("LM0= 0.1", "LM0= 0.1\nSecond= 0.05\nOther= 1 0 1 0").replace(
        "Distortion\n",
        "PhraseDictionaryMemory name=Other num-features=4 path=other.gz input-factor=0 output-factor=0\n"
        f"Distortion\nKENLM name=Second factor=0 path={GOLDEN / 'model.trie'} order=3\n", 1,
    )  # fmt: skip
    ini += "[mapping]\n0 T 0\n1 T 1\n"
    files = {"table.gz": table[::2], "other.gz": table[1::2], "dev.x": source, "dev.y": target, "moses.ini": [ini],
             "lm.arpa": [line + "\n" for line in arpa]}  # fmt: skip
    for name, text in files.items():
        write(tmp_path / name, "".join(text).encode())
    outcome = run_inside(
        "prune", tmp_path / "table.gz", "--moses-ini", tmp_path / "moses.ini", "--dev", tmp_path / "dev.x",
        tmp_path / "dev.y", "--method", "count", "--max-bleu-loss", "3", "-o", tmp_path / "small.gz",
        "--stats", tmp_path / "stats", "--force",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    kept = read(tmp_path / "small.gz")
    assert set(kept.splitlines()) < set("".join(files["table.gz"]).encode().splitlines())
    budget = json.loads(read(tmp_path / "stats"))["budget"]
    assert budget["entries"] == kept.count(b"\n")
    [trial] = [trial for trial in budget["trials"] if trial["entries"] == budget["entries"]]
    write(tmp_path / "small.ini", ini.replace("path=table.gz", "path=small.gz").encode())
    out = decode(tmp_path / "small.ini", tmp_path / "dev.x", "--force").out.decode().splitlines()
    score = sacrebleu.corpus_bleu(out, ["".join(target).splitlines()], tokenize="none", force=True).score
    assert trial["bleu"] == pytest.approx(score, abs=1e-3)


FAULTS = [
    ("0 T 0\n1 T 1", "0 T 0\n0 T 1", "moses.ini:7: [mapping]: '0 T 1': expected each path and each table once"),
    ("0 T 0\n1 T 1", "0 T 0\n1 T 2", "moses.ini:7: [mapping]: the ini has no phrase table 2, it has 2"),
    ("0 T 0\n1 T 1", "0 T 0\n1 G 0", "moses.ini:7: [mapping]: expected `PATH T TABLE`, found '1 G 0'"),
    ("[feature]", "[decoding-graph-backoff]\n0\n2\n\n[feature]", "[decoding-graph-backoff]: expected 0, found '2'"),
    ("LM1= ", "LM7= ", "there is no feature LM7 for these weights"),
    ("name=LM1", "name=LM0", "a second feature with the name LM0"),
    ("second.arpa", "gone.arpa", "gone.arpa: No such file or directory"),
    ("model.probing", "gone.binary", "gone.binary: No such file or directory"),
    ("table1.gz", "gone.gz", "gone.gz: No such file or directory"),
]


@pytest.mark.parametrize(("old", "new", "message"), FAULTS, ids=[message[:40] for *_, message in FAULTS])
def test_errors_are_reported_in_one_line(example, old, new, message):
    outcome = decode(example.changed(old, new), example.text)
    assert outcome.code == 1
    assert message.replace("moses.ini", "changed.ini") in outcome.message


def test_a_damaged_language_model(example, tmp_path):
    data = (GOLDEN / "model.probing").read_bytes()
    for name, content, message in (
        ("short", data[:700], "bytes, but its header implies"),
        ("old", data.replace(b"version 5", b"version 4"), "a binary file of kenlm's format 4; expected format 5"),
    ):
        path = write(tmp_path / name, content)
        outcome = decode(example.changed(str(GOLDEN / "model.probing"), str(path)), example.text)
        assert outcome.code == 1
        assert outcome.message.startswith(f"phrasetool: {path}: ")
        assert message in outcome.message


def test_an_ambiguous_table_option_is_refused(example, tmp_path):
    """It is an error if --table could replace more than one table."""
    table = write(tmp_path / "other.gz", b"")
    outcome = decode(example.ini, example.text, "--table", table)
    assert outcome.code == 1
    assert (
        "several phrase tables could be meant: TranslationModel0 (table.gz), TranslationModel1 (table1.gz)"
        in outcome.message
    )
