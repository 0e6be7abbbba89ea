import gzip
import random
import re
from dataclasses import replace

import pytest

from moses_compat.engine.model import MosesModel
from moses_compat.engine.n_best import n_best_lines
from tests import naive_decoder as naive
from tests.commands import read, run_inside, run_outside, whole_commands, write
from tests.decoder_models import LanguageModels, random_model, random_sentence, write_model
from tests.n_best_lists import read_n_best


def decode(ini, *arguments, **options):
    return run_inside("decode", "--moses-ini", ini, "-q", *arguments, **options)


class Example:
    """A model in files, a text that it can translate, and the same model for the naive decoder."""

    def __init__(self, folder):
        models = LanguageModels(folder, 1)
        rng = random.Random(20)
        self.sentences = [random_sentence(rng, size) for size in (4, 3, 0, 4, 1, 5)]
        self.model = random_model(rng, self.sentences[0] + self.sentences[5], models.kenlm[0])
        self.model.distortion_limit, self.model.table_limit = 2, 2
        self.model.entries = list({(entry.source, entry.target): entry for entry in self.model.entries}.values())
        self.arpa = models.paths[0]
        self.ini = write_model(self.model, folder / "model", self.arpa)
        self.text = folder / "text"
        self.text.write_bytes(b"".join(b" ".join(sentence) + b"\n" for sentence in self.sentences))

    def best(self, model=None):
        """Return the best translations according to the naive decoder."""
        model = model or self.model
        collected = []
        for sentence in self.sentences:
            best = max(naive.derivations(model, sentence), key=lambda d: naive.score(model, d))
            collected.append(b" ".join(naive.target(best)))
        return b"".join(line + b"\n" for line in collected)

    def changed_ini(self, old, new):
        """Write a changed copy of the ini into its folder; return the path."""
        text = self.ini.read_text()
        assert old in text
        path = self.ini.parent / "changed.ini"
        path.write_text(text.replace(old, new))
        return path


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return Example(tmp_path_factory.mktemp("decode"))


NO_PRUNING = ("--beam-threshold", "0", "--stack", "2000")


@pytest.mark.parametrize("search", [("stack",), ("cube", "--pop-limit", "1000000")])
def test_the_translations_are_the_best(example, search):
    outcome = decode(example.ini, example.text, "--search", *search, *NO_PRUNING)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == example.best()


def test_inputs_and_outputs(example, tmp_path):
    plain, packed, from_gzip = tmp_path / "plain", tmp_path / "packed.gz", tmp_path / "text.gz"
    from_gzip.write_bytes(gzip.compress(example.text.read_bytes()))
    out = decode(example.ini, example.text).out
    assert out.count(b"\n") == len(example.sentences)
    assert decode(example.ini, stdin=example.text.read_bytes()).out == out
    assert decode(example.ini, "-", stdin=example.text.read_bytes()[:-1]).out == out
    assert decode(example.ini, from_gzip, "-o", plain).out == b""
    assert decode(example.ini, example.text, "-o", packed).code == 0
    assert read(plain) == read(packed) == out
    # An empty file has no translations.
    assert decode(example.ini, stdin=b"").out == b""
    assert decode(example.ini, stdin=b"\n\n").out == b"\n\n"


def test_n_best_lists(example, tmp_path):
    model = MosesModel.read(str(example.ini))
    translator, source = model.load(example.text.read_bytes())
    best = decode(example.ini, example.text).out
    for name, options, distinct, extra in [
        ("a", (), True, False),
        ("b.gz", ("--segmentation",), True, True),
        ("c", ("--all-derivations", "--segmentation"), False, True),
    ]:
        path, out = tmp_path / name, tmp_path / "out"
        outcome = decode(example.ini, example.text, "-o", out, "--n-best-list", path, 5, *options)
        assert (outcome.code, outcome.err) == (0, "")
        # The list does not change the translations.
        assert read(out) == best
        result = translator.translate_all(source.sentences, model.search, 5, distinct)
        lines = [n_best_lines(translator, i, f, model.listed, extra, extra) for i, f in enumerate(result)]
        assert read(path) == b"".join(lines)
        candidates = list(read_n_best(str(path)))
        assert {c.sentence for c in candidates} == set(range(len(example.sentences)))
    assert len(candidates) > len(list(read_n_best(str(tmp_path / "a"))))
    # The list can be on standard output if the translations are in a file.
    assert decode(example.ini, example.text, "-o", out, "--n-best-list", "-", 5).out == read(tmp_path / "a")


def test_threads_make_no_difference(example, tmp_path):
    text = tmp_path / "text"
    text.write_bytes(example.text.read_bytes() * 20)
    outputs = []
    for threads in (1, 2):
        out, listing = tmp_path / f"out{threads}.gz", tmp_path / f"list{threads}.gz"
        outcome = decode(
            example.ini, text, "-o", out, "--n-best-list", listing, 4, "--segmentation", "--threads", threads
        )
        assert outcome.code == 0
        outputs.append((out.read_bytes(), listing.read_bytes()))
    assert outputs[0] == outputs[1]


def test_limits_default_to_those_of_the_ini(example):
    ini = example.changed_ini("[distortion-limit]\n2", "[distortion-limit]\n0")
    monotone = example.best(replace(example.model, distortion_limit=0))
    assert monotone != example.best()
    assert decode(ini, example.text, *NO_PRUNING).out == monotone
    assert decode(ini, example.text, *NO_PRUNING, "--distortion-limit", 2).out == example.best()
    assert decode(example.ini, example.text, *NO_PRUNING, "--distortion-limit", 0).out == monotone
    unlimited_distortion = example.best(replace(example.model, distortion_limit=-1))
    assert decode(example.ini, example.text, *NO_PRUNING, "--distortion-limit", -1).out == unlimited_distortion
    table_limit_1 = example.best(replace(example.model, table_limit=1))
    assert table_limit_1 != example.best()
    assert decode(example.ini, example.text, *NO_PRUNING, "--table-limit", 1).out == table_limit_1
    assert decode(example.changed_ini("table-limit=2", "table-limit=1"), example.text, *NO_PRUNING).out == table_limit_1
    no_table_limit = example.best(replace(example.model, table_limit=0))
    assert decode(example.ini, example.text, *NO_PRUNING, "--table-limit", 0).out == no_table_limit


def test_the_ini_enables_marks_of_unknown_words_and_alignments(example, tmp_path):
    plain, listed = decode(example.ini, example.text).out, tmp_path / "list"
    assert b"q" in plain
    for sections, prefix, suffix in [
        ("yes\n", b"UNK", b""),
        ("1\n[unknown-word-suffix]\n+\n", b"UNK", b"+"),
        ("no\n", b"", b""),
    ]:
        ini = example.changed_ini("# a model\n", f"[mark-unknown]\n{sections}")
        marked = decode(ini, example.text, "--n-best-list", listed, 1)
        assert marked.out == plain.replace(b"q", prefix + b"q" + suffix)
        assert [b" ".join(c.words) for c in read_n_best(str(listed))] == marked.out.splitlines()
    ini = example.changed_ini("# a model\n", "[print-alignment-info]\ntrue\n")
    lines = decode(ini, example.text, "--n-best-list", listed, 1, "--segmentation").out.splitlines()
    points = [line.split(b"|||")[5].strip() for line in listed.read_bytes().splitlines()]
    assert [line.partition(b"||| ")[2].strip() for line in lines] == points
    assert [line.partition(b"||| ")[0].strip() for line in lines] == plain.splitlines()


def test_a_table_of_another_model_in_the_working_directory(example, tmp_path, monkeypatch):
    """The working directory lacks the ini's other files, so Moses would fail; the table must not be mixed with them."""
    plain = decode(example.ini, example.text).out
    other_table = write(tmp_path / "table.gz", b"a ||| of another model ||| 1\n")
    monkeypatch.chdir(tmp_path)
    outcome = decode(example.ini, example.text)
    assert (outcome.code, outcome.out) == (0, plain)
    assert outcome.message.endswith("table.gz of the working directory, which differs from that in "
                                 f"{example.ini.parent}, is not used")  # fmt: skip
    # There is no message if both folders have the same file.
    other_table.unlink()
    for path in example.ini.parent.glob("*.gz"):
        (tmp_path / path.name).symlink_to(path)
    assert (decode(example.ini, example.text).out, decode(example.ini, example.text).err) == (plain, "")


def test_options_of_a_span_are_limited(example):
    ini = example.changed_ini("# a model\n", "[max-trans-opt-per-coverage]\n1\n")
    limited = decode(example.ini, example.text, "--table-limit", 1).out
    assert limited != decode(example.ini, example.text).out
    for options in ((), ("--table-limit", 5), ("--table-limit", 0)):
        assert decode(ini, example.text, *options).out == limited


def test_the_order_of_the_ini_limits_models_of_other_toolkits(example):
    plain = decode(example.ini, example.text).out
    assert decode(example.changed_ini("KENLM", "SRILM"), example.text).out == plain
    # KenLM ignores the order and uses the whole model.
    assert decode(example.changed_ini("order=3", "order=2"), example.text).out == plain
    ini = example.changed_ini("KENLM", "SRILM")
    ini.write_text(ini.read_text().replace("order=3", "order=2"))
    message = f"{example.arpa}: the language model has order 3, but the ini limits it to 2; use KENLM"
    assert decode(ini, example.text).message.startswith(f"phrasetool: {message}")


def test_another_table(example, tmp_path):
    words = {word for sentence in example.sentences for word in sentence}
    columns = len(example.model.weights["TranslationModel"])
    table = tmp_path / "table"
    table.write_bytes(b"".join(b"%s ||| %s ||| %s\n" % (w, w * 2, b" ".join([b"1"] * columns)) for w in sorted(words)))
    refused = decode(example.ini, example.text, "--table", table, "--distortion-limit", 0)
    assert refused.code == 1
    assert f"{example.arpa}: the language model knows 0.0 % of the 6 target words of {table}; " in refused.message
    outcome = decode(example.ini, example.text, "--table", table, "--distortion-limit", 0, "--force")
    assert outcome.message.endswith("expected a model of the table's target language")
    assert outcome.out == b"".join(b" ".join(w * 2 for w in sentence) + b"\n" for sentence in example.sentences)


def test_messages(example, tmp_path):
    outcome = run_inside("decode", "--moses-ini", example.ini, example.text, "-o", tmp_path / "out")
    assert outcome.code == 0
    first, paths, share, last = outcome.err.splitlines()
    prefix = f"{example.ini}: its paths are relative to {example.ini.parent}, because "
    assert paths.startswith(f"phrasetool: {prefix}")
    assert paths.endswith(" does not exist in the working directory, where Moses looks")
    assert "6 sentences; " in first
    assert "1 word has no translation and will be copied" in first
    assert re.fullmatch(r"phrasetool: \d+\.\d % of \d+ tokens have no translation", share)
    assert "6 sentences translated" in last
    assert "mean model score" in last


def test_a_text_of_unknown_words(example, tmp_path):
    text = write(tmp_path / "text", b"zz yy xx\nvv\n" * 5)
    refused = run_inside("decode", "--moses-ini", example.ini, text, "-q", "-o", tmp_path / "out")
    assert refused.code == 1
    assert refused.message.startswith(f"phrasetool: {text}: 100.0 % of its 20 tokens have no translation in ")
    assert refused.message.endswith("; --force continues anyway")
    assert not (tmp_path / "out").exists()
    outcome = run_inside("decode", "--moses-ini", example.ini, text, "-q", "--force")
    assert (outcome.code, outcome.out) == (0, text.read_bytes())
    assert f"phrasetool: warning: {text}: 100.0 % of its 20 tokens have no translation in " in outcome.message
    assert run_inside("decode", "--moses-ini", example.ini, write(text, b"\n"), "-q").err == ""


def test_help_ends_with_an_example():
    lines = whole_commands(run_inside("decode", "--help").out.decode())
    assert all(line.startswith("phrasetool decode --moses-ini") for line in lines[lines.index("Example:") + 1 :])


# Invalid models: (file, text to replace or None to append, new text, message).
FAULTS = [
    ("moses.ini", "Model0=", "Model0= 1", r"moses.ini:\d+: TranslationModel0 has 4 features but 5"),
    ("moses.ini", "LM0=", "LM1=", r"moses.ini:\d+: there is no feature LM1"),
    ("moses.ini", "\nDistortion\n", "\nDistance\n", r"moses.ini:\d+: the decoder does not know the feature Distance"),
    ("moses.ini", "PhraseDictionaryMemory", "ProbingPT", r"moses.ini:\d+: TranslationModel0 is a ProbingPT table"),
    (
        "moses.ini",
        "path=table.gz",
        "path=none.gz",
        r"moses.ini: names a file that cannot be read: .*none.gz: No such file",
    ),
    ("moses.ini", "order=3", "order=3 factor=1", r"moses.ini:\d+: KENLM: the key factor is given twice"),
    ("table", b" ||| ", b" ||| extra ||| ", r"table:[0-9]+: a score is not a number"),
    ("table", None, b"a ||| x ||| 1 -1 1 1\n", r"table:\d+: a score is negative"),
    ("table", None, b"a ||| x ||| 1 1\n", r"table:\d+: .*score"),
    ("table", None, b"a ||| x ||| 1 1 1 1 ||| 0~0\n", r"table:\d+: the alignment is not a list"),
    ("arpa", b"\\end\\", b"", r"arpa:\d+: expected \\end\\ \(is the file truncated\?\)"),
    ("arpa", b"\\data\\", b"data", r"arpa:1: not an ARPA file"),
    ("arpa", b"<s>", b"<S>", r"arpa.*: .*<s>"),
]


@pytest.fixture
def malformed(tmp_path, example):
    """Return a function that writes an invalid model with four table scores and uncompressed files."""

    def build(name, old, new):
        rng = random.Random(1)
        model = random_model(rng, example.sentences[0])
        while len(model.weights["TranslationModel"]) != 4:
            model = random_model(rng, example.sentences[0])
        arpa = tmp_path / "arpa"
        arpa.write_bytes(example.arpa.read_bytes())
        ini = write_model(model, tmp_path / "malformed", arpa)
        table = ini.parent / "table"
        table.write_bytes(read(ini.parent / "table.gz"))
        files = {"moses.ini": ini, "table": table, "arpa": arpa}
        data = files[name].read_bytes()
        if isinstance(old, str):
            old, new = old.encode(), new.encode()
        assert old is None or old in data
        files[name].write_bytes(data + new if old is None else data.replace(old, new))
        if name != "moses.ini":
            ini.write_bytes(ini.read_bytes().replace(b"table.gz", b"table"))
        return ini

    return build


@pytest.mark.parametrize(("name", "old", "new", "message"), FAULTS, ids=[fault[3][:30] for fault in FAULTS])
def test_bad_models_are_refused_in_one_line(example, malformed, tmp_path, name, old, new, message):
    ini = malformed(name, old, new)
    out, listing = tmp_path / "out", tmp_path / "list"
    out.write_bytes(b"precious")
    before = sorted(tmp_path.iterdir())
    outcome = decode(ini, "-", "-o", out, "--n-best-list", listing, 3, stdin=b"a b c d e q\n")
    assert outcome.code == 1
    assert re.search(message, outcome.message), outcome.message
    assert out.read_bytes() == b"precious"
    assert sorted(tmp_path.iterdir()) == before


def test_damaged_gzip(example, tmp_path):
    table = tmp_path / "table.gz"
    table.write_bytes(read(example.ini.parent / "table.gz")[:0] + gzip.compress(b"a ||| x ||| 1\n" * 5000)[:60])
    outcome = decode(example.ini, example.text, "--table", table, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "the gzip data end too early" in outcome.message
    assert not (tmp_path / "out").exists()
    table.write_bytes(b"")
    assert "0 bytes" in decode(example.ini, example.text, "--table", table).message


def test_model_files_are_not_overwritten(example, tmp_path):
    arguments = (example.ini, example.text)
    files = [example.ini, example.text, example.arpa, example.ini.parent / "table.gz"]
    before = [path.read_bytes() for path in files]
    for path in files:
        assert "the output is the input" in decode(*arguments, "-o", path).message
        outcome = decode(*arguments, "-o", tmp_path / "out", "--n-best-list", path, 3)
        assert "the output is the input" in outcome.message
    assert [path.read_bytes() for path in files] == before
    assert "two outputs" in decode(*arguments, "--n-best-list", "-", 3).message
    same = tmp_path / "out"
    assert "two outputs" in decode(*arguments, "-o", same, "--n-best-list", same, 3).message
    assert not same.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        ("--search", "best"), ("--stack", "0"), ("--pop-limit", "0"), ("--beam-threshold", "2"),
        ("--table-limit", "-1"), ("--n-best-list", "x", "0"), ("--threads", "0"), ("--distortion-limit", "x"),
    ],
)  # fmt: skip
def test_wrong_usage(example, wrong):
    assert decode(example.ini, example.text, *wrong).code == 2
    assert run_inside("decode", example.text).code == 2


def test_missing_files(example, tmp_path):
    assert "No such file" in decode(tmp_path / "none.ini", example.text).message
    assert "No such file" in decode(example.ini, tmp_path / "none").message
    assert "No such file" in decode(example.ini, example.text, "--table", tmp_path / "none").message


def test_as_a_process(example, tmp_path):
    """The output of a separate process is the same."""
    outcome = run_outside("decode", "--moses-ini", example.ini, example.text)
    assert outcome.code == 0
    assert outcome.out == decode(example.ini, example.text).out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pop-limit", "5"), "--pop-limit is for cube pruning"),
        (("--all-derivations",), "--all-derivations is for the list of --n-best-list"),
        (("--segmentation",), "--segmentation is for the list of --n-best-list"),
    ],
)
def test_options_without_effect_are_refused(example, options, message):
    outcome = decode(example.ini, example.text, *options)
    assert (outcome.code, outcome.out) == (2, b"")
    assert message in outcome.message


def test_a_short_text_of_unknown_words_is_copied_with_a_warning(example):
    """Only a text with enough tokens is refused."""
    few = run_inside("decode", "--moses-ini", example.ini, "-", "-q", stdin=b"Anna Meier\n")
    assert (few.code, few.out) == (0, b"Anna Meier\n")
    assert "100.0 % of its 2 tokens have no translation" in few.message
    many = run_inside("decode", "--moses-ini", example.ini, "-", "-q", stdin=b"Anna Meier\n" * 10)
    assert (many.code, many.out) == (1, b"")
    assert "100.0 % of its 20 tokens have no translation" in many.message
