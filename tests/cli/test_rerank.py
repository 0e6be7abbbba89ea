import contextlib
import json
import math

import kenlm
import numpy as np
import pytest
import sacrebleu

from tests.commands import read, run_inside, write
from tests.reranking_lists import make

MODELS = ("-m", "forward", "-m", "backward")
DEV = ("--dev-list", "dev.nbest", "--dev", "dev.src", "dev.ref")
RERANK = ("rerank", "test.nbest", "--source", "test.src")
RESCORE = ("rescore", "test.nbest", "--source", "test.src")


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lists")
    make(folder)
    return folder


def run(folder, *arguments, code=0):
    with contextlib.chdir(folder):
        outcome = run_inside(*arguments)
    assert outcome.code == code, outcome.err
    return outcome


def bleu(path, reference):
    lines, references = (read(file).decode().splitlines() for file in (path, reference))
    return sacrebleu.corpus_bleu(lines, [references], tokenize="none", force=True).score


def test_rescore_appends_and_changes_nothing_else(lists):
    run(lists, *RESCORE, *MODELS, "-o", "rescored", "--threads", "1")
    run(lists, *RESCORE, *MODELS, "-o", "again", "--threads", "2")
    assert read(lists / "rescored") == read(lists / "again")
    before, after = (read(lists / name).decode().splitlines() for name in ("test.nbest", "rescored"))
    for old, new in zip(before, after, strict=True):
        old_fields, new_fields = old.split("|||"), new.split("|||")
        added = new_fields[2].removeprefix(old_fields[2])
        assert added != new_fields[2]
        assert [token for token in added.split() if token.endswith("=")] == ["NeuralForward0=", "NeuralBackward0="]
        assert [*old_fields[:2], *old_fields[3:]] == [*new_fields[:2], *new_fields[3:]]


def test_a_split_of_a_list_has_the_same_scores(lists):
    run(lists, *RESCORE, *MODELS, "-o", "whole", "-q")
    lines = read(lists / "test.nbest").splitlines(keepends=True)
    parts = [b"".join(line for line in lines if (int(line.split()[0]) < 17) == first) for first in (True, False)]
    scored = b""
    for number, part in enumerate(parts):
        write(lists / f"part{number}", part)
        run(lists, "rescore", f"part{number}", "--source", "test.src", *MODELS, "-o", f"scored{number}", "-q")
        scored += read(lists / f"scored{number}")
    assert scored == read(lists / "whole")


def test_columns_by_length_and_by_model(lists):
    def values(*options):
        run(lists, *RESCORE, *options, "-o", "columns", "-q")
        lines = read(lists / "columns").decode().splitlines()
        return [float(line.split("NeuralForward0= ")[1].split()[0]) for line in lines]

    words = [len(line.split("|||")[1].split()) for line in read(lists / "test.nbest").decode().splitlines()]
    mean, whole = values("-m", "forward"), values("-m", "forward", "--length-normalisation", "none")
    for average, total, count in zip(mean, whole, words, strict=True):
        assert average * (count + 1) == pytest.approx(total, rel=1e-4)
    # The mean of two equal models is that of one; with --each, each model has a column.
    assert values("-m", "forward", "-m", "forward") == mean
    assert values("-m", "forward", "-m", "forward", "--each") == mean
    assert b"NeuralForward1= " in read(lists / "columns")


def test_language_models_give_kenlms_log_probability(lists):
    """The log-probabilities of the 240 hypotheses equal those of kenlm, to a relative error of 1e-8."""
    run(lists, *RESCORE, "--lm", "target.arpa", "-m", "forward", "-o", "columns", "-q")
    reference = kenlm.Model(str(lists / "target.arpa"))
    lines = read(lists / "columns").decode().splitlines()
    assert len(lines) == 240
    for line in lines:
        _, words, features, *_ = line.split(" ||| ")
        assert features.split()[-4::2] == ["NeuralForward0=", "ExtraLM0="]
        expected = reference.score(words) * math.log(10)
        assert float(features.split()[-1]) == pytest.approx(expected, rel=1e-8)
    outcome = run(lists, *RESCORE, "--lm", "source.arpa", "-o", "other", "-q", code=1)
    assert "source.arpa: knows 0% of the tokens of test.nbest, expected at least 60%" in outcome.err
    run(lists, *RESCORE, "--lm", "source.arpa", "-o", "other", "-q", "--force")
    outcome = run(lists, "rescore", "columns", "--source", "test.src", "--lm", "target.arpa", "-q", code=1)
    assert "columns: has the feature ExtraLM0 already; leave out the models to use it" in outcome.err
    assert "name a translator with --model, or a language model with --lm" in run(lists, *RESCORE, code=2).err


def test_a_swapped_development_set_is_refused(lists):
    """Copied words, numbers and punctuation would make the lines of a swapped set correspond anyway."""
    for name in ("src", "ref"):
        lines = read(lists / f"dev.{name}").decode().splitlines()
        write(lists / f"copied.{name}", "".join(f"{line} n{number}\n" for number, line in enumerate(lines)).encode())
    listed = [line.split(" ||| ", 2) for line in read(lists / "dev.nbest").decode().splitlines()]
    copied = "".join(f"{number} ||| {words.strip()} n{number}  ||| {rest}\n" for number, words, rest in listed)
    write(lists / "copied.nbest", copied.encode())
    options = ("--lm", "target.arpa", "--dev-list", "copied.nbest", "-o", "x", "-q")
    run(lists, *RERANK, *options, "--dev", "copied.src", "copied.ref")
    outcome = run(lists, *RERANK, *options, "--dev", "copied.ref", "copied.src", code=1)
    assert "are the source and the reference swapped?" in outcome.err
    write(lists / "another.name", read(lists / "copied.src"))
    outcome = run(lists, *RERANK, *options, "--dev", "copied.src", "another.name", code=1)
    assert "another.name: is the same text as copied.src; expected its translation" in outcome.err


def test_weights_of_a_language_model(lists):
    """Rescoring before reranking gives the same output as rescoring while reranking; other models are refused."""
    run(lists, *RERANK, "--lm", "target.arpa", *DEV, "--save-weights", "w", "-o", "at-once", "-q")
    assert json.loads(read(lists / "w"))["weights"].keys() == {"TM0", "WordPenalty0", "ExtraLM0"}
    for name in ("dev", "test"):
        run(
            lists,
            "rescore",
            f"{name}.nbest",
            "--source",
            f"{name}.src",
            "--lm",
            "target.arpa",
            "-o",
            f"{name}.lm",
            "-q",
        )
    run(lists, "rerank", "test.lm", "--source", "test.src", "--dev-list", "dev.lm", *DEV[2:], "-o", "in-turn", "-q")
    assert read(lists / "at-once") == read(lists / "in-turn")
    run(lists, *RERANK, "--lm", "target.arpa", "--weights", "w", "-o", "again", "-q")
    assert read(lists / "again") == read(lists / "at-once")
    for option in (("--tune", "all"), ("--seed", "2")):
        outcome = run(lists, *RERANK, "--weights", "w", *option, "-o", "x", code=2)
        assert f"{option[0]} is for tuning, and --weights tunes nothing" in outcome.err
    outcome = run(lists, *RERANK, "--lm", "source.arpa", "--force", "--weights", "w", "-o", "x", code=1)
    assert "the weights were tuned with other models" in outcome.err


def test_old_weights_are_tuned_only_if_requested(lists):
    """With --tune new, the default, the weights of the features of the list keep their proportions."""

    def named(*options):
        return json.loads(run(lists, *RERANK, *MODELS, *DEV, *options, "-o", "x", "--json", "-q").out)["weights"]

    proportions, added = None, {"NeuralForward0", "NeuralBackward0"}
    for options in (("--tune", "new"), (), ("--tune", "all")):
        weights = named(*options)
        old = np.concatenate([np.ravel(value) for name, value in weights.items() if name not in added])
        assert added < set(weights)
        assert len(old) > 1
        old = old / np.abs(old).sum()
        if "all" not in options:
            proportions = old if proportions is None else proportions
            assert old == pytest.approx(proportions, rel=1e-5)
        else:
            assert np.abs(old - proportions).max() > 1e-4


def test_rerank_tunes_weights_and_reports_the_gain(lists):
    outcome = run(
        lists, *RERANK, *MODELS, *DEV, "-r", "test.ref", "-o", "out", "--reranked-list", "sorted", "--save-weights",
        "w",
        "--json", "report.json",
    )  # fmt: skip
    report = json.loads(read(lists / "report.json"))
    assert report["bleu_after"] > report["bleu_before"] + 10
    assert report["bleu_oracle"] >= report["bleu_after"]
    assert report["p_value"] < 0.01
    assert report["bleu_after"] == pytest.approx(bleu(lists / "out", lists / "test.ref"), abs=1e-6)
    assert report["development_bleu"]["after"] > report["development_bleu"]["before"] + 10
    assert "BLEU" in outcome.err
    # The first hypotheses of the list are the output text, and totals never increase.
    first_texts = {}
    last_totals = {}
    for line in read(lists / "sorted").decode().splitlines():
        number, text, _, total = line.split("|||")[:4]
        first_texts.setdefault(number, " ".join(text.split()))
        assert float(total) <= last_totals.get(number, float("inf"))
        last_totals[number] = float(total)
    assert list(first_texts.values()) == read(lists / "out").decode().splitlines()
    saved = json.loads(read(lists / "w"))
    assert saved["weights"] == report["weights"]
    assert saved["weights"]["NeuralForward0"][0] > 0
    assert sum(abs(weight) for values in saved["weights"].values() for weight in values) == pytest.approx(1)


def test_saved_weights_and_rescored_lists_give_the_same_bytes(lists):
    run(lists, *RERANK, *MODELS, *DEV, "-o", "tuned", "--save-weights", "saved", "--threads", "1")
    run(lists, *RERANK, *MODELS, "--weights", "saved", "-o", "applied", "--threads", "2")
    for name in ("dev", "test"):
        run(lists, "rescore", f"{name}.nbest", "--source", f"{name}.src", *MODELS, "-o", f"{name}.more", "-q")
    run(lists, "rerank", "test.more", "--source", "test.src", "--weights", "saved", "-o", "without")
    dev = ("--dev-list", "dev.more", *DEV[2:])
    run(lists, "rerank", "test.more", "--source", "test.src", *dev, "--save-weights", "other", "-o", "both")
    assert read(lists / "tuned") == read(lists / "applied") == read(lists / "without")
    # Tuning on the written scores, which are the same numbers, gives the same weights.
    assert read(lists / "both") == read(lists / "tuned")
    assert json.loads(read(lists / "other"))["weights"] == json.loads(read(lists / "saved"))["weights"]


def test_lists_with_sparse_features(lists):
    """TM_x has a weight of 0.3 in the totals of every third line; TM_y occurs on a line of the test list only."""
    for name in ("dev", "test"):
        lines = []
        for number, line in enumerate(read(lists / f"{name}.nbest").splitlines()):
            fields = line.split(b" ||| ")
            if number % 3 == 0:
                fields[2] = b"TM_x= 2 " + fields[2]
                fields[3] = b"%.6g" % (float(fields[3]) + 0.6)
            if name == "test" and number == 1:
                fields[2] += b" TM_y= 1"
            lines.append(b" ||| ".join(fields) + b"\n")
        write(lists / f"sparse.{name}", b"".join(lines))
        run(lists, "rescore", f"sparse.{name}", "--source", f"{name}.src", *MODELS, "-o", f"sparse.{name}.more", "-q")
    rerank, dev = ("rerank", "sparse.test", "--source", "test.src"), ("--dev-list", "sparse.dev", *DEV[2:])
    outcome = run(
        lists, *rerank, *MODELS, *dev, "-o", "tuned", "--save-weights", "saved", "--reranked-list", "listed", "-q"
    )
    assert (
        outcome.message
        == "phrasetool: warning: sparse.test: 1 sparse features are not in sparse.dev; they have no weight"
    )
    report = json.loads(read(lists / "saved"))["weights"]
    assert report["TM_x"][0] / report["TM0"][0] == pytest.approx(0.3 / 0.5, rel=1e-3)
    assert set(report) == {"TM0", "WordPenalty0", "NeuralForward0", "NeuralBackward0", "TM_x"}
    assert sorted(
        line.split(b" ||| ")[2].split(b" Neural")[0] for line in read(lists / "listed").splitlines()
    ) == sorted(line.split(b" ||| ")[2].rstrip() for line in read(lists / "sparse.test").splitlines())
    more = ("rerank", "sparse.test.more", "--source", "test.src")
    run(lists, *more, "--weights", "saved", "-o", "applied")
    run(lists, *more, "--dev-list", "sparse.dev.more", *DEV[2:], "-o", "both")
    assert read(lists / "tuned") == read(lists / "applied") == read(lists / "both")


def test_a_list_of_moses_is_reranked(lists):
    """Moses may write a hypothesis without words, fields after the total, and gaps between sentences."""
    lines = [line for line in read(lists / "test.nbest").splitlines(keepends=True) if not line.startswith(b"3 ")]
    lines[0] = b"0 |||  ||| TM0= 9 WordPenalty0= 0 ||| -99 ||| \n"
    write(lists / "gaps", b"".join(lines))
    outcome = run(lists, "rerank", "gaps", "--source", "test.src", *MODELS, *DEV, "-r", "test.ref", "-o", "gaps.out")
    assert "no hypotheses of 1 of the 30 lines" in outcome.err
    out = read(lists / "gaps.out").split(b"\n")
    assert len(out) == 31
    assert out[3] == b""
    assert all(out[:3])


def refusal(folder, *arguments, code=1):
    return run(folder, *arguments, "-o", "nothing", code=code).err.strip().splitlines()[-1]


def test_lists_of_other_texts_are_refused(lists):
    lines = read(lists / "test.src").splitlines(keepends=True)
    write(lists / "shorter", b"".join(lines[:20]))
    message = refusal(lists, "rescore", "test.nbest", "--source", "shorter", *MODELS)
    assert "test.nbest:161: sentence 20, but shorter has 20 lines" in message
    write(lists / "moved", b"".join(lines[1:] + lines[:1]))
    message = refusal(lists, "rescore", "test.nbest", "--source", "moved", *MODELS)
    assert "AUC 0." in message
    assert "--force" in message
    outcome = run(lists, "rescore", "test.nbest", "--source", "moved", *MODELS, "--force", "-o", "forced")
    assert "warning: test.nbest: its hypotheses fit" in outcome.err
    assert "AUC 0." in refusal(lists, "rescore", "test.nbest", "--source", "moved", "-m", "backward")
    message = refusal(lists, "rescore", "test.nbest", "--source", "test.ref", "-m", "forward")
    assert "forward: both test.ref and test.nbest are in its target language" in message
    write(lists / "other", b"".join(b"w w w\n" for _ in lines))
    message = refusal(lists, "rescore", "test.nbest", "--source", "other", "-m", "forward")
    assert "forward: does not translate between other and test.nbest" in message
    assert "is the model untrained" in refusal(lists, *RESCORE, "-m", "untrained")


def test_incompatible_lists_and_weights_are_refused(lists):
    write(lists / "less", read(lists / "dev.nbest").replace(b"WordPenalty0", b"Penalty0"))
    less = ("--dev-list", "less", *DEV[2:])
    assert "less: has the features TM0, Penalty0, but test.nbest has" in refusal(lists, *RERANK, *MODELS, *less)
    run(lists, *RERANK, *MODELS, *DEV, "-o", "out1", "--save-weights", "both")
    message = refusal(lists, *RERANK, "-m", "forward", "--weights", "both")
    assert "but the weights are of TM0, WordPenalty0, NeuralForward0, NeuralBackward0" in message
    message = refusal(lists, *RERANK, *MODELS, "--length-normalisation", "none", "--weights", "both")
    assert "tuned with other models" in message
    assert "not a file of weights" in refusal(lists, *RERANK, "--weights", "dev.ref")
    run(lists, *RESCORE, "-m", "forward", "-o", "has")
    message = refusal(lists, "rescore", "has", "--source", "test.src", "-m", "forward")
    assert "has: has the feature NeuralForward0 already" in message
    write(lists / "short.ref", b"t1\n")
    assert "short.ref: has 1 lines" in refusal(lists, *RERANK, *MODELS, *DEV, "-r", "short.ref")
    write(lists / "odd", b"".join(
        line.replace(b"||| -", b"||| 1", 1) if i % 2 else line
        for i, line in enumerate(read(lists / "dev.nbest").splitlines(keepends=True))
    ))  # fmt: skip
    odd = ("--dev-list", "odd", *DEV[2:])
    assert "not weighted sums of its features" in refusal(lists, *RERANK, *MODELS, *odd)


def test_references_of_other_sentences(lists):
    write(lists / "reversed.ref", b"".join(reversed(read(lists / "dev.ref").splitlines(keepends=True))))
    dev = (*DEV[:4], "reversed.ref")
    message = refusal(lists, *RERANK, *MODELS, *dev)
    assert "reversed.ref: its lines share no more words with what dev.nbest has for the lines of dev.src" in message
    assert "warning: reversed.ref" in run(lists, *RERANK, *MODELS, *dev, "-o", "forced", "--force").err


def test_a_reference_of_other_sentences_is_reported_next_to_its_bleu(lists):
    """The translations do not depend on the reference."""
    write(lists / "reversed.ref", b"".join(reversed(read(lists / "test.ref").splitlines(keepends=True))))
    right = run(lists, *RERANK, *MODELS, *DEV, "-r", "test.ref", "-o", "right")
    wrong = run(lists, *RERANK, *MODELS, *DEV, "-r", "reversed.ref", "-o", "wrong")
    assert "warning" not in right.err
    assert "warning: reversed.ref: its lines share no more words with what test.nbest has" in wrong.err
    assert read(lists / "wrong") == read(lists / "right")


@pytest.mark.parametrize("given", [(), DEV[:2], DEV[2:], (*DEV, "--weights", "dev.ref")])
def test_weights_or_a_development_set(lists, given):
    assert "to tune, or --weights" in refusal(lists, *RERANK, *MODELS, *given, code=2)


def test_bleu_is_that_of_the_output_file(lists):
    """Sentences without hypotheses count as empty lines, in the reranked list and in the one for tuning."""
    lines = read(lists / "dev.nbest").splitlines(keepends=True)
    write(lists / "fewer.nbest", b"".join(line for line in lines if int(line.split()[0]) not in (0, 7, 39)))
    dev = ("--dev-list", "fewer.nbest", *DEV[2:])
    outcome = run(lists, "rerank", "fewer.nbest", "--source", "dev.src", *MODELS, *dev, "-r", "dev.ref", "-o", "best",
                  "--json", "report")  # fmt: skip
    assert "no hypotheses of 3 of the 40 lines of dev.src" in outcome.err
    report = json.loads(read(lists / "report"))
    assert report["sentences"] == 37
    assert read(lists / "best").count(b"\n") == 40
    expected = bleu(lists / "best", lists / "dev.ref")
    assert report["bleu_after"] == pytest.approx(expected, abs=1e-6)
    assert report["development_bleu"]["after"] == pytest.approx(expected, abs=1e-6)
    assert f"-> {expected:.2f} (p = " in outcome.err
    outcome = run(lists, "evaluate", "best", "-r", "dev.ref", "--metrics", "bleu", "--samples", 2)
    assert f" {expected:.2f} " in outcome.out.decode()


def test_bleu_of_few_matches_is_smoothed_as_by_evaluate(lists):
    write(lists / "one.ref", b"t0 t1 t2 x\n" + b"y\n" * 29)
    run(lists, *RERANK, *MODELS, *DEV, "-r", "one.ref", "-o", "best", "--json", "report", "-q")
    report = json.loads(read(lists / "report"))
    assert report["bleu_after"] == pytest.approx(bleu(lists / "best", lists / "one.ref"), abs=1e-6)


def test_hypotheses_without_words_do_not_hide_the_others(lists):
    """If first hypotheses are empty, the check of the model uses the hypotheses that have words."""
    lines = read(lists / "test.nbest").decode().splitlines()
    firsts = {line.split()[0]: line for line in reversed(lines)}
    empty = {number: line.replace(line.split("|||")[1], "  ", 1) for number, line in firsts.items()}
    text = "".join(
        f"{empty.pop(line.split()[0]) + chr(10) if line.split()[0] in empty else ''}{line}\n" for line in lines
    )
    write(lists / "empty.nbest", text.encode())
    run(lists, "rescore", "empty.nbest", "--source", "test.src", *MODELS, "-o", "rescored", "-q")
    assert len(read(lists / "rescored").splitlines()) == len(lines) + 30
    run(lists, *RESCORE, *MODELS, "-o", "plain", "-q")
    assert set(read(lists / "plain").splitlines()) < set(read(lists / "rescored").splitlines())
    swapped = run(lists, "rescore", "empty.nbest", "--source", "test.ref", "-m", "forward", "-o", "out", code=1)
    assert "are in its target language" in swapped.message


def test_lists_and_texts_without_words_are_refused(lists):
    write(lists / "void.nbest", b"".join(b"%d |||  ||| TM0= 0.5 ||| %d\n" % (i, i) for i in range(3)))
    outcome = run(lists, "rescore", "void.nbest", "--source", "test.src", *MODELS, "-o", "nothing", code=1)
    assert outcome.message == "phrasetool: void.nbest: none of its 3 hypotheses has a word"
    write(lists / "void.src", b"\n" * 30)
    outcome = run(lists, "rescore", "test.nbest", "--source", "void.src", *MODELS, "-o", "nothing", code=1)
    assert outcome.message == "phrasetool: void.src: has no words; expected the text that the list translates"
    write(lists / "void.ref", b" \n" * 30)
    outcome = run(lists, *RERANK, *MODELS, *DEV, "-r", "void.ref", "-o", "nothing", code=1)
    assert outcome.message == "phrasetool: void.ref: has no words; expected one translation per line"
    assert not (lists / "nothing").exists()


def test_the_seed_of_tuning(lists):
    """Equal seeds give equal weights; another seed shuffles the sentences differently and gives other weights."""

    def weights(name, *options):
        run(lists, *RERANK, *MODELS, *DEV, "-o", "best", "--save-weights", name, "-q", *options)
        return json.loads(read(lists / name))["weights"]

    first, again, other_seed = weights("w1", "--seed", 1), weights("w2"), weights("w3", "--seed", 2)
    assert first == again
    assert read(lists / "w1") == read(lists / "w2")
    assert other_seed != first
    # The signs of the weights do not depend on the seed.
    assert {name: value[0] > 0 for name, value in other_seed.items()} == {
        name: value[0] > 0 for name, value in first.items()
    }


def test_the_former_options_of_the_development_set(lists):
    former = (*DEV[:2], "--dev-source", "dev.src", "--dev-reference", "dev.ref")
    outcome = run(lists, *RERANK, *MODELS, *former, "-o", "former")
    assert outcome.err.startswith(
        "phrasetool: hint: --dev-source and --dev-reference are now `--dev SOURCE TARGET`; the old form"
    )
    run(lists, *RERANK, *MODELS, *DEV, "-o", "present")
    assert read(lists / "former") == read(lists / "present")
