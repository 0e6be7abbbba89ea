import json
import os
import re

import numpy as np
import pytest

from moses_compat.engine.model import MosesModel
from moses_compat.ini.reading import read_moses_ini
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.tuning.loop import NBestDecoder
from tests.commands import read, run_inside, write

WORDS = 8
INI = """\
[mapping]
0 T 0

[distortion-limit]
2

[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty{penalty}
PhraseDictionaryMemory name=TranslationModel0 num-features=2 path=./table input-factor=0 output-factor=0
Distortion
KENLM name=LM0 factor=0 path=./lm.arpa order=1

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -0.2
PhrasePenalty0= 0.1
# the second score is the wrong one to follow
TranslationModel0= 0.1 0.5
Distortion0= 0.2
LM0= 0.1
"""
TUNED = ["Distortion0", "LM0", "WordPenalty0", "PhrasePenalty0", "TranslationModel0"]


@pytest.fixture
def model(tmp_path):
    """The folder of a model that prefers wrong words, and of a development set."""
    rng = np.random.default_rng(1)
    entries, unigrams = [], ["-1\t<unk>", "-99\t<s>", "-1\t</s>"]
    for i in range(WORDS):
        # Right words have a higher first score, and wrong words a higher second score, up to noise.
        for kind, scores in (("right", (0.6, 0.2)), ("wrong", (0.2, 0.6)), ("odd", (0.2, 0.2))):
            a, b = np.array(scores) * rng.uniform(0.7, 1.4, 2)
            entries.append(f"s{i} ||| {kind}{i} ||| {a:.4f} {b:.4f} ||| 0-0 ||| 1 1 1\n")
            unigrams.append(f"-1.2\t{kind}{i}")
    arpa = f"\\data\\\nngram 1={len(unigrams)}\nngram 2=1\n\n\\1-grams:\n" + "\n".join(unigrams)
    arpa += "\n\n\\2-grams:\n-1\t<s> </s>\n\n\\end\\\n"
    lines = [rng.integers(0, WORDS, rng.integers(4, 8)) for _ in range(12)]
    source = "".join(" ".join(f"s{i}" for i in line) + " name\n" for line in lines)
    reference = "".join(" ".join(f"right{i}" for i in line) + " name\n" for line in lines)
    contents = {"table": "".join(sorted(entries)), "lm.arpa": arpa, "dev.src": source, "dev.ref": reference}
    for name, text in {**contents, "moses.ini": INI.format(penalty="")}.items():
        write(tmp_path / name, text.encode())
    return tmp_path


def run(model, *options, ini="moses.ini", source="dev.src", reference="dev.ref", output="tuned.ini"):
    arguments = ["--moses-ini", model / ini, "--dev", model / source, model / reference]
    arguments += ["-o", model / output, "--n-best-size", 20, "--threads", 1, *options]
    return run_inside("tune", *arguments)


@pytest.mark.parametrize("algorithm", ["mira", "pro"])
@pytest.mark.parametrize("search", ["stack", "cube"])
def test_a_model_learns_which_score_to_follow(model, algorithm, search):
    log = model / "log.jsonl"
    outcome = run(model, "--algorithm", algorithm, "--search", search, "--log", log)
    assert outcome.code == 0, outcome.err
    runs = [json.loads(line) for line in read(log).splitlines()]
    assert runs[0]["bleu"] < 20
    best = max(runs, key=lambda run: run["bleu"])
    assert best["bleu"] > 90
    assert f"best: run {best['run']}, BLEU {best['bleu']:.2f} (at the start {runs[0]['bleu']:.2f})" in outcome.err
    assert outcome.err.count("new translations") == len(runs)
    ini = read_moses_ini(str(model / "tuned.ini"))
    for name in TUNED:
        np.testing.assert_allclose(ini.weights[name], best["weights"][name], rtol=1e-8)
    assert sum(abs(w) for name in TUNED for w in ini.weights[name]) == pytest.approx(1)
    assert ini.weights["TranslationModel0"][0] > ini.weights["TranslationModel0"][1]
    # Nothing else has changed.
    before, after = (model / "moses.ini").read_text().splitlines(), (model / "tuned.ini").read_text().splitlines()
    assert after[0].startswith("# tuned by phrasetool ")
    assert [line for line in after[1:] if "0= " not in line] == [line for line in before if "0= " not in line]
    assert "UnknownWordPenalty0= 1" in after


def test_the_seed_decides_and_threads_do_not(model):
    inis = {}
    for name, options in (("a", []), ("b", ["--threads", 2]), ("c", ["--seed", 2]), ("d", ["--restarts", 2])):
        assert run(model, "--iterations", 3, "-q", *options, output=f"{name}.ini").code == 0
        inis[name] = read(model / f"{name}.ini")
    assert inis["a"] == inis["b"]
    # The first line names the seed.
    weights = {name: text.partition(b"\n")[2] for name, text in inis.items()}
    assert weights["a"] != weights["c"]
    assert b"of start" in inis["d"]


def test_weights_with_tuneable_false_are_kept(model):
    write(model / "fixed.ini", INI.format(penalty=" tuneable=false").encode())
    assert run(model, "-q", "--iterations", 3, ini="fixed.ini").code == 0
    weights = read_moses_ini(str(model / "tuned.ini")).weights
    assert weights["PhrasePenalty0"] == [0.1]
    assert sum(abs(w) for name in TUNED if name != "PhrasePenalty0" for w in weights[name]) == pytest.approx(1)


def fixed_score(model, first):
    """Write an ini in which the wrong score has the fixed weight 2 and the right one begins with `first`."""
    text = INI.format(penalty="").replace("path=./table", "path=./table tuneable-components=true,false")
    write(model / "fixed.ini", text.replace("TranslationModel0= 0.1 0.5", f"TranslationModel0= {first} 2").encode())


@pytest.mark.parametrize("algorithm", ["mira", "pro"])
def test_a_weight_is_tuned_against_a_fixed_one(model, algorithm):
    fixed_score(model, 1)
    assert run(model, "-q", "--algorithm", algorithm, ini="fixed.ini").code == 0
    right, wrong = read_moses_ini(str(model / "tuned.ini")).weights["TranslationModel0"]
    assert wrong == 2
    assert right > 2
    outcome = run_inside("decode", "--moses-ini", model / "tuned.ini", model / "dev.src", "-q")
    reference = read(model / "dev.ref").split()
    matches = sum(a == b for a, b in zip(outcome.out.split(), reference, strict=True))
    assert matches > 0.9 * len(reference)


def test_the_start_is_decoded_and_kept_as_it_is_next_to_fixed_weights(model):
    fixed_score(model, 4)
    outcome = run(model, "--iterations", 1, "--json", model / "json", ini="fixed.ini")
    assert "no run was better than the start, whose weights are kept" in outcome.err
    before, after = (read_moses_ini(str(model / name)).weights for name in ("fixed.ini", "tuned.ini"))
    for name in TUNED:
        assert after[name] == pytest.approx(before[name], rel=1e-8)
    # With weights that are normalised except for the fixed one, the wrong words would win.
    assert json.loads(read(model / "json"))["bleu_at_start"] > 90


def test_candidates_are_those_of_the_decoder(model):
    described = MosesModel.read(str(model / "moses.ini"))
    translator, text = described.load((model / "dev.src").read_bytes() + b"\n")
    ticks = []
    tuned = described.tuneable.copy()
    tuned[0] = False
    decoder = NBestDecoder(translator, text.sentences, described.search, 7, tuned, tick=lambda: ticks.append(1))
    weights = np.arange(1.0, tuned.sum() + 1)
    result = decoder(weights)
    reweighted = translator.with_weights(decoder.all_weights(weights))
    assert decoder.all_weights(weights)[0] == described.weights[0]
    assert decoder.all_weights(weights)[tuned].tolist() == weights.tolist()
    expected = list(reweighted.translate_all(text.sentences, described.search, 7))
    assert len(ticks) == len(expected) == 13
    assert result.sentence.tolist() == [s for s, translation in enumerate(expected) for _ in range(len(translation))]
    words = [reweighted.words(t, d).tolist() for t in expected for d in range(len(t))]
    assert [row.tolist() for row in result.words] == words
    features = np.concatenate([t.features for t in expected])
    fixed = features[:, :1] * described.weights[0]
    np.testing.assert_allclose(result.features, np.column_stack([features[:, tuned], fixed]), rtol=1e-6)
    assert words[-1] == []


def test_unknown_words_of_the_reference_match_nothing(model):
    write(model / "strange.ref", b"xx yy zz vv\n" * 12)
    outcome = run(model, "--iterations", 2, "--force", reference="strange.ref")
    assert outcome.code == 0
    assert "BLEU 0.00" in outcome.err
    symbols = Symbols([b"a"])
    assert symbols.read_lines(b"a b a\n", add=False)[0].tolist() == [0, -1, 0]


def test_several_references(model):
    write(model / "other.ref", (model / "dev.ref").read_bytes().replace(b"right1", b"odd1"))
    assert run(model, "-q", "--reference", model / "other.ref", "--iterations", 2).code == 0
    assert b"on dev.ref, other.ref" in read(model / "tuned.ini")
    # A reference that is named twice counts once: the best match of an n-gram is the same.
    assert run(model, "-q", "--reference", model / "dev.ref", "--iterations", 2, output="twice.ini").code == 0
    assert run(model, "-q", "--iterations", 2, output="once.ini").code == 0
    twice, once = (read_moses_ini(str(model / name)) for name in ("twice.ini", "once.ini"))
    assert twice.weights == once.weights


@pytest.mark.parametrize("output", ["-", "/dev/stdout", "/dev/fd/2"])
def test_relative_needs_an_output_file(output):
    outcome = run_inside("tune", "--moses-ini", "ini", "--dev", "source", "reference", "--relative", "-o", output)
    assert (outcome.code, "--relative needs to know the folder" in outcome.err) == (2, True), outcome.err


def test_relative_paths_survive_a_move(model):
    (model / "elsewhere").mkdir()
    run(model, "--iterations", 1, output="elsewhere/tuned.ini")
    moved = MosesModel.read(str(model / "elsewhere" / "tuned.ini"))
    assert moved.paths == [str(model / "table"), str(model / "lm.arpa")]
    run(model, "--iterations", 1)
    assert b"path=./table " in read(model / "tuned.ini")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dev.ref": b"right1\n"}, "dev.ref: has 1 lines, but "),
        ({"dev.src": b""}, "dev.src: the file has no lines"),
        ({"moses.ini": INI.format(penalty="").replace("0.1 0.5", "0.1 0.5 0.2").encode()}, "3 weights"),
        ({"table": b"s1 ||| right1 ||| 0.5\n"}, "scores"),
        ({"lm.arpa": b"\\data\\\nngram 1=9\n"}, "lm.arpa"),
    ],
)
def test_bad_input_leaves_no_files(model, changes, message):
    for name, data in changes.items():
        write(model / name, data)
    before = sorted(os.listdir(model))
    outcome = run(model, "--log", model / "log.jsonl")
    assert outcome.code == 1
    assert message in outcome.message
    assert sorted(os.listdir(model)) == before


def test_nothing_to_tune(model):
    text = INI.format(penalty="").replace("-0.2", "0").replace("0.1 0.5", "0 0")
    write(model / "moses.ini", text.replace("= 0.2", "= 0").replace("= 0.1", "= 0").encode())
    outcome = run(model)
    assert outcome.code == 1
    assert outcome.message.endswith("moses.ini: no weight to tune: all are 0, or have tuneable=false")


@pytest.mark.parametrize(
    "options", [["--algorithm", "mert"], ["--n-best-size", 1], ["--iterations", 0], ["--restarts", 0], ["--seed", -1]]
)
def test_bad_usage(model, options):
    assert run(model, *options).code == 2


def test_outputs_must_not_be_inputs(model):
    outcome = run(model, output="moses.ini")
    assert outcome.code == 1
    assert "the output is the input" in outcome.message


def lines_of(path):
    return path.read_bytes().splitlines()


def swapped(model):
    return (
        "dev.ref",
        "dev.src",
        r"0\.0 % of its 77 tokens .*but 8\d\.\d % of those of .*dev\.src: the source and .* swap",
    )


def another_language(model):
    write(model / "other", (model / "dev.src").read_bytes().replace(b"s", b"z"))
    return (
        "other",
        "dev.ref",
        r"other: 0\.0 % of its 77 tokens have a translation in .*table, expected at least 30\.0 %",
    )


def other_capitals(model):
    write(model / "capitals", (model / "dev.src").read_bytes().upper())
    return "capitals", "dev.ref", r"capitals: 0\.0 % .* but 8\d\.\d % if it is lower-cased: give it the capitals"


def not_tokenised(model):
    write(model / "table", b", ||| , ||| 0.5 0.5 ||| 0-0\n" + (model / "table").read_bytes())
    write(model / "raw", (model / "dev.src").read_bytes().replace(b" ", b", "))
    return "raw", "dev.ref", r"raw: 0\.0 % .* % if spaces stand around its punctuation: tokenise it"


def the_source_itself(model):
    return "dev.src", "dev.src", r"dev\.src: is the same text as .*dev\.src; expected its translation"


def references_of_another_language(model):
    write(model / "strange", b"xx yy zz vv\n" * 12)
    return (
        "dev.src",
        "strange",
        r"strange: its lines share no more words .* in random order \(p = 1\.000, at most 0\.01",
    )


def unrelated_references(model):
    """Ten short lines: if half a match is added to each order, the BLEU of any of them is above 1."""
    lines = [f"s{i % 8} s{(3 * i + 1) % 8} name" for i in range(10)]
    write(model / "short.src", "".join(f"{line}\n" for line in lines).encode())
    references = [line.replace("s", "right") for line in (*lines[5:], *lines[:5])]
    write(model / "short.ref", "".join(f"{line}\n" for line in references[::-1]).encode())
    return (
        "short.src",
        "short.ref",
        r"short\.ref: its lines share no more words with what .*table has for the lines of .*short\.src than in random "
        r"order \(p = 0\.\d+, at most 0\.01 is accepted\); expected its translation, line for line",
    )


def moved_references(model):
    lines = lines_of(model / "dev.ref")
    write(model / "moved", b"".join(line + b"\n" for line in (*lines[1:], lines[0])))
    return "dev.src", "moved", r"moved: fits .*dev\.src much better if it is moved down by 1 line; expected its"


WRONG = [
    swapped,
    another_language,
    other_capitals,
    not_tokenised,
    the_source_itself,
    references_of_another_language,
    unrelated_references,
    moved_references,
]


@pytest.mark.parametrize("make", WRONG)
def test_unsuitable_development_sets(model, make):
    source, reference, message = make(model)
    before = sorted(os.listdir(model))
    outcome = run(model, "--log", model / "log", "--iterations", 2, "-q", source=source, reference=reference)
    assert outcome.code == 1
    assert re.search(message, outcome.message), outcome.message
    assert outcome.message.endswith("; --force continues anyway")
    assert sorted(os.listdir(model)) == before
    forced = run(model, "--force", "--iterations", 1, "-q", source=source, reference=reference)
    assert forced.code == 0
    assert forced.err.startswith("phrasetool: warning: ")
    assert re.search(message, forced.err)
    assert (model / "tuned.ini").exists()


def test_coverage_is_checked_before_decoding(model, monkeypatch):
    decoded = []
    monkeypatch.setattr(NBestDecoder, "__call__", lambda *arguments: decoded.append(arguments))
    assert run(model, source="dev.ref", reference="dev.src").code == 1
    assert not decoded


def test_texts_without_words(model):
    write(model / "blank", b" \n" * 12)
    for source, reference in (("blank", "dev.ref"), ("dev.src", "blank")):
        outcome = run(model, "--force", source=source, reference=reference)
        assert outcome.code == 1
        assert outcome.message.endswith("blank: has no words; expected one tokenised sentence per line")


def test_a_table_without_entries_is_reported_as_such(model):
    write(model / "table", b"\n")
    assert "table" in run(model, "-q").message
    write(model / "table", b"")
    assert run(model, "-q").message.endswith("table: the table has no entries")


def test_a_small_development_set_needs_force(model):
    """A set of one sentence of two words, which has no 4-gram and so BLEU 0, is accepted only with --force."""
    write(model / "one.src", b"s1 s2\n")
    write(model / "one.ref", b"right1 right2\n")
    message = (
        "one.src: has 1 sentences with words; BLEU of so few means nothing, expected at least 10, better 500 or more"
    )
    refused = run(model, "--iterations", 2, "-q", source="one.src", reference="one.ref")
    assert refused.code == 1
    assert refused.message.endswith(f"{message}; --force continues anyway")
    outcome = run(model, "--iterations", 2, "-q", "--force", source="one.src", reference="one.ref")
    assert (outcome.code, outcome.message.endswith(message)) == (0, True)


def test_low_coverage_causes_a_warning(model):
    write(model / "half.src", b"".join(line.rsplit(b" ", 3)[0] + b" x y z\n" for line in lines_of(model / "dev.src")))
    write(model / "half.ref", b"".join(line.rsplit(b" ", 3)[0] + b" x y z\n" for line in lines_of(model / "dev.ref")))
    outcome = run(model, "--iterations", 1, "-q", source="half.src", reference="half.ref")
    assert outcome.code == 0
    assert re.search(r"warning: .*half\.src: [345]\d\.\d % of its 7\d+ tokens have a translation in ", outcome.message)
