"""`phrasetool mine`: a corpus with planted pairs, interruptions, and invalid usage."""

import gzip
import json
import math

import pytest

from phrasetool.pair_classifier import bitext_scores
from phrasetool.text_encoders.encoders import StaticEncoder
from tests.commands import run_inside, run_outside, write
from tests.comparable_text import encoder_folder, write_corpus
from tests.phrasetool.pair_classifier.pair_models import WordsInCommon
from tests.variants import for_each


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return encoder_folder(tmp_path_factory.mktemp("encoder") / "static")


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path)


def pairs(path):
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()
    return [tuple(line.split("\t")) for line in lines]


def test_the_planted_pairs_are_found(encoder, corpus, tmp_path):
    out = tmp_path / "mined.tsv.gz"
    outcome = run_inside(
        "mine", tmp_path / "s.txt", tmp_path / "t.txt", "--encoder", encoder, "--dev-gold", tmp_path / "gold.tsv",
        "-o", out, "--json", tmp_path / "told.json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    result = {pair[1:] for pair in pairs(out)}
    assert len(result & set(corpus)) >= 57
    assert len(result - set(corpus)) <= 3
    scores = [float(pair[0]) for pair in pairs(out)]
    assert scores == sorted(scores, reverse=True)
    report = json.loads((tmp_path / "told.json").read_text())
    assert (report["source"]["lines"], report["target"]["different"], report["search"]) == (140, 140, "exact")
    assert report["written"] == len(result)
    assert report["threshold"] <= scores[-1]
    assert "pairs that score at least" in outcome.err
    assert len(list(tmp_path.glob("mined.tsv.*.vectors"))) == 1


def test_pairs_below_a_cosine_are_left_out(encoder, corpus, tmp_path):
    mine = ("mine", tmp_path / "s.txt", tmp_path / "t.txt", "--encoder", encoder, "--explain", "-q")

    def cosines(*options):
        assert run_inside(*mine, "-o", tmp_path / "mined", *options).code == 0
        return {pair[1:3]: float(pair[4]) for pair in pairs(tmp_path / "mined")}

    everything = cosines()
    limit = sorted(everything.values())[len(everything) // 2]
    # Cosines are written with six digits; the limit lies between two of them.
    limit -= 5e-7
    result = cosines("--min-cosine", limit)
    assert min(result.values()) >= limit
    assert set(result) >= {pair for pair, cosine in everything.items() if cosine > limit}
    assert len(result) < len(everything)
    outcome = run_inside(*mine, "-o", tmp_path / "none", "--min-cosine", 1)
    assert outcome.code == 0
    assert all(float(pair[4]) >= 1 for pair in pairs(tmp_path / "none"))


def test_threads_and_blocks_change_nothing_through_the_real_entry_point(encoder, corpus, tmp_path):
    outputs = []
    for threads, block in ((1, 512), (2, 512), (2, 7), (1, 1)):
        outcome = run_outside(
            "mine", "s.txt", "t.txt", "--encoder", encoder, "--threads", threads, "--block-rows", block, "-q",
            "--explain", cwd=tmp_path,
        )  # fmt: skip
        assert (outcome.code, outcome.err) == (0, "")
        outputs.append(outcome.out)
    assert len(outputs[0]) > 3000
    assert len(set(outputs)) == 1


def test_approximate_search_reports_its_accuracy(encoder, corpus, tmp_path):
    pytest.importorskip("faiss", reason="the extra `mine` is not installed")
    mine = ("mine", tmp_path / "s.txt", tmp_path / "t.txt", "--encoder", encoder)
    outcome = run_inside(*mine, "--neighbour-search", "approximate", "-o", tmp_path / "a.tsv", "--json", tmp_path / "j")
    assert outcome.code == 0, outcome.err
    assert "approximate search: the nearest is the right one of" in outcome.err
    assert json.loads((tmp_path / "j").read_text())["search"]["approximate"]["share"] >= 0.98
    run_inside(*mine, "-o", tmp_path / "e.tsv", "-q")
    approximate, exact = ({pair[1:] for pair in pairs(tmp_path / name)} for name in ("a.tsv", "e.tsv"))
    assert len(approximate & exact) > 0.9 * len(exact)


def test_interrupted_work_is_resumed(encoder, corpus, tmp_path, monkeypatch):
    mine = ("mine", tmp_path / "s.txt", tmp_path / "t.txt", "--encoder", encoder, "--threads", 1, "-q")
    assert run_inside(*mine, "-o", tmp_path / "whole.tsv").code == 0
    encode, calls = StaticEncoder.encode, []

    def interrupted(self, texts, side):
        calls.append((side, len(texts)))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return encode(self, texts, side)

    monkeypatch.setattr(StaticEncoder, "encode", interrupted)
    assert run_inside(*mine, "-o", tmp_path / "m.tsv").code == 130
    assert not (tmp_path / "m.tsv").exists()
    assert run_inside(*mine, "-o", tmp_path / "m.tsv").code == 0
    # The vectors of the source had been stored.
    assert [side for side, _ in calls] == ["source", "target", "target"]
    assert run_inside(*mine, "-o", tmp_path / "m.tsv", "--margin-type", "distance").code == 0
    assert len(calls) == 3
    assert run_inside(*mine, "-o", tmp_path / "m.tsv").code == 0
    assert (tmp_path / "m.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()


def test_copies_tabs_duplicates_and_empty_lines(encoder, tmp_path):
    (tmp_path / "s").write_bytes(b"s1 s2\ts3\r\n\ns1  s2 s3\ns9 s8\nt5 &amp; t6\nxx yy\n")
    (tmp_path / "t").write_bytes(b"t9 t8\nt1 t2 t3\nt5 & t6\n")
    mine = ("mine", tmp_path / "s", tmp_path / "t", "--encoder", encoder, "-k", 50)
    outcome = run_inside(*mine, "-o", tmp_path / "o", "--json", tmp_path / "j")
    assert outcome.code == 0, outcome.err
    result = pairs(tmp_path / "o")
    assert {pair[1:] for pair in result} == {
        ("s1 s2 s3", "t1 t2 t3"), ("s9 s8", "t9 t8"), ("t5 &amp; t6", "t5 & t6", "copy"),
    }  # fmt: skip
    report = json.loads((tmp_path / "j").read_text())
    assert report["source"] == {
        "file": str(tmp_path / "s"), "lines": 6, "empty": 1, "different": 4, "without_vector": 1,
    }  # fmt: skip
    assert report["copies"] == 1
    assert "1 pairs of two equal sentences are candidates" in outcome.err
    outcome = run_inside(*mine, "-o", tmp_path / "o", "--drop-copies")
    assert {pair[1:] for pair in pairs(tmp_path / "o")} == {("s1 s2 s3", "t1 t2 t3"), ("s9 s8", "t9 t8")}
    assert "were left out" in outcome.err


def test_names_of_sentences(encoder, corpus, tmp_path):
    for name in ("s", "t"):
        lines = (tmp_path / f"{name}.txt").read_text().splitlines()
        (tmp_path / f"{name}.ids").write_text("".join(f"{name}-{i}\t{line}\n" for i, line in enumerate(lines)))
    mine = ("mine", "--encoder", encoder, "-q")
    run_inside(*mine, tmp_path / "s.ids", tmp_path / "t.ids", "--ids", "-o", tmp_path / "named.tsv")
    run_inside(*mine, tmp_path / "s.txt", tmp_path / "t.txt", "-o", tmp_path / "plain.tsv")
    text = {
        f"{name}-{i}": line
        for name in ("s", "t")
        for i, line in enumerate((tmp_path / f"{name}.txt").read_text().splitlines())
    }
    named = [(score, text[s], text[t]) for score, s, t in pairs(tmp_path / "named.tsv")]
    assert named == pairs(tmp_path / "plain.tsv")


def test_a_threshold_from_other_texts(encoder, corpus, tmp_path):
    (tmp_path / "dev").mkdir()
    write_corpus(tmp_path / "dev", seed=7)
    dev = [tmp_path / "dev" / name for name in ("s.txt", "t.txt", "gold.tsv")]
    outcome = run_inside(
        "mine", tmp_path / "s.txt", tmp_path / "t.txt", "--encoder", encoder, "--dev", dev[0],
        dev[1], "--dev-gold", dev[2], "-o", tmp_path / "m.tsv",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    result = {pair[1:] for pair in pairs(tmp_path / "m.tsv")}
    right = len(result & set(corpus))
    assert 2 * right / (len(result) + len(corpus)) > 0.9
    alone = run_inside("mine", *dev[:2], "--encoder", encoder, "--dev-gold", dev[2], "-o", tmp_path / "d.tsv")
    thresholds = [
        line.split()[2] for output in (outcome, alone) for line in output.err.splitlines() if " threshold " in line
    ]
    assert thresholds[0] == thresholds[1]


@pytest.fixture
def classifier(monkeypatch, tmp_path):
    """Replace the classifier of every model folder by `WordsInCommon`, and write two small texts."""
    result = WordsInCommon()
    monkeypatch.setattr(bitext_scores, "load_pair_model", lambda folder: bitext_scores.pair_encoder_of(result, folder))
    (tmp_path / "s").write_text("haus grün und\nhund rot\nnicht ein hund\n")
    # In addition to each of two translations, a longer text whose vector has the same direction.
    (tmp_path / "t").write_text(
        "house green and\nhouse green and house green and\ndog red\ndog red dog red\nnot a dog\n"
    )
    return result


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
def test_a_classifier_chooses_among_candidates(classifier, margin, tmp_path):
    mine = ("mine", tmp_path / "s", tmp_path / "t", "-m", "model", "--margin-type", margin, "--retrieval", "forward")
    assert run_inside(*mine, "-o", tmp_path / "o", "--explain", "-q").code == 0
    result = pairs(tmp_path / "o")
    assert {pair[1:3] for pair in result} == {
        ("haus grün und", "house green and"), ("hund rot", "dog red"), ("nicht ein hund", "not a dog"),
    }  # fmt: skip
    for score, _, _, similarity, _, probability, blind in result:
        assert float(score) == pytest.approx(float(similarity) + 0.02 * math.log(float(probability)), abs=1e-5)
        # Here the lengths do not lower the probability.
        assert float(blind) == pytest.approx(float(probability), abs=1e-5)
    assert run_inside(*mine[:-1], "backward", "-o", tmp_path / "o", "--explain", "-q").code == 0
    probability, blind = next(pair[5:] for pair in pairs(tmp_path / "o") if pair[2].startswith("house green and house"))
    assert float(probability) < 0.05 < 0.2 < float(blind)
    assert run_inside(*mine, "-o", tmp_path / "o", "--rerank", 0, "-q").code == 0
    assert all(len(pair) == 3 for pair in pairs(tmp_path / "o"))


def test_the_weight_of_probabilities_is_tuned_on_gold_pairs(classifier, tmp_path):
    # The classifier is wrong here: of two texts with vectors of the same direction, the longer one is correct.
    (tmp_path / "gold").write_text("haus grün und\thouse green and house green and\nhund rot\tdog red\n")
    mine = ("mine", tmp_path / "s", tmp_path / "t", "-m", "model", "--retrieval", "backward", "--explain")
    weights = {}
    for weight in ("0", "0.01", "0.02", "0.05", "0.1", "0.2"):
        outcome = run_inside(
            *mine, "--dev-gold", tmp_path / "gold", "--probability-weight", weight, "-o", tmp_path / weight
        )
        assert f"weight of probabilities {weight}, from" in outcome.err, outcome.err
        result = pairs(tmp_path / weight)
        for score, _, _, similarity, _, probability, _ in result:
            expected = float(similarity) + float(weight) * math.log(float(probability))
            assert float(score) == pytest.approx(expected, abs=1e-5)
        right = {tuple(line.split("\t")) for line in (tmp_path / "gold").read_text().splitlines()}
        hits = len(right & {pair[1:3] for pair in result})
        weights[weight] = 2 * hits / (len(result) + len(right))
    assert len(set(weights.values())) > 1
    best = max(weights, key=weights.get)
    outcome = run_inside(*mine, "--dev-gold", tmp_path / "gold", "-o", tmp_path / "o", "--json", tmp_path / "j")
    assert f"weight of probabilities {best}, from" in outcome.err
    assert (tmp_path / "o").read_bytes() == (tmp_path / best).read_bytes()
    assert json.loads((tmp_path / "j").read_text())["weight"] == float(best)


def test_over_long_sentences_are_counted(classifier, tmp_path):
    (tmp_path / "s").write_text("haus " * 9 + "\nhund\n")
    outcome = run_inside("mine", tmp_path / "s", tmp_path / "t", "-m", "model", "-o", tmp_path / "o")
    assert "1 sentences exceed the encoder's maximum length and were truncated" in outcome.err


def test_tabs_and_carriage_returns_are_written_as_spaces(encoder, tmp_path):
    write(tmp_path / "s.txt", b"s1\rs2\ts3\r\ns4 s5\n")
    write(tmp_path / "t.txt", b"t1 t2 t3\nt4\rt5\n")
    out = tmp_path / "mined"
    outcome = run_inside("mine", tmp_path / "s.txt", tmp_path / "t.txt", "--encoder", encoder, "-k", 1, "-o", out)
    assert outcome.code == 0, outcome.err
    assert sorted(pair[1:] for pair in pairs(out)) == [("s1 s2 s3", "t1 t2 t3"), ("s4 s5", "t4 t5")]


@for_each(
    ("arguments", "code", "message"),
    [
        ((), 2, "name a classifier with --model, or a sentence encoder with --encoder"),
        (("-m", "m", "--encoder", "e"), 2, "name a classifier with --model, or"),
        (("-m", "m", "--prefix", "a"), 2, "--prefix is for a sentence encoder"),
        (("--encoder", "e", "--rerank", "4"), 2, "--rerank needs a classifier; name one with --model"),
        (
            ("--encoder", "e", "--probability-weight", "0.1"),
            2,
            "--probability-weight needs a classifier; name one with --model",
        ),
        (("-m", "m", "--probability-weight", "nan"), 2, "not a finite number"),
        (("-m", "m", "--probability-weight", "-1"), 2, "range"),
        (("-m", "m", "--rerank", "0", "--probability-weight", "0.5"), 2, "--probability-weight has no effect with"),
        (("--encoder", "e", "--detokenise", "german"), 2, "--detokenise: 'german' is not a language code"),
        (("--encoder", "e", "--threshold", "nan"), 2, "'nan' is not a finite number"),
        (("--encoder", "e", "--min-cosine", "nan"), 2, "not a finite number"),
        (("--encoder", "e", "--min-cosine", "2"), 2, "range"),
        (("--encoder", "e", "-k", "0"), 2, "range"),
        (("--encoder", "e", "--threshold", "1", "--dev-gold", "g"), 2, "both set the threshold"),
        (("--encoder", "e", "--dev-source", "s"), 2, "must be given together"),
        (("--encoder", "e", "--dev", "s", "t"), 2, "--dev is for --dev-gold"),
        (("--encoder", "none"), 1, "none: no such folder"),
        (("-m", "none"), 1, "none: no such model folder"),
    ],
)
def test_invalid_usage(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("s.txt", "t.txt", "s", "t", "g"):
        (tmp_path / name).write_text("a b\n")
    outcome = run_inside("mine", "s.txt", "t.txt", *arguments, "-o", "o.tsv")
    assert outcome.code == code
    assert message in outcome.message
    assert not (tmp_path / "o.tsv").exists()


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (b"a\n\xff\xfe b\n", (), "s.txt:2: is not UTF-8"),
        (b"", (), "s.txt: has no sentences"),
        (b"\n \n", (), "s.txt: has no sentences"),
        (b"x1\ta b\nno name\n", ("--ids",), "s.txt:2: expected a name, a tab and a sentence"),
        (b"s1\n", ("--dev-gold", "gold.tsv"), "gold.tsv: none of its 1 pairs was found; are they of these texts?"),
    ],
)
def test_bad_files(encoder, source, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.txt").write_bytes(source)
    (tmp_path / "t.txt").write_bytes(b"y1\tt1 t2\n" if "--ids" in options else b"t1\n")
    (tmp_path / "gold.tsv").write_text("a\tb\n")
    outcome = run_inside("mine", "s.txt", "t.txt", "--encoder", encoder, *options, "-o", "o.tsv", "-q")
    assert outcome.code == 1
    assert message in outcome.message
    assert not (tmp_path / "o.tsv").exists()


def test_the_same_file_or_stream_twice(encoder, tmp_path):
    (tmp_path / "s").write_text("s1\n")
    outcome = run_inside("mine", tmp_path / "s", tmp_path / "s", "--encoder", encoder, "-q")
    assert (outcome.code, "is also the source file" in outcome.message) == (1, True)
    outcome = run_inside("mine", "-", "-", "--encoder", encoder)
    assert (outcome.code, "only one input can be standard input" in outcome.err) == (2, True)
    outcome = run_inside("mine", "-", tmp_path / "s", "--encoder", encoder, "-q", stdin=b"t1\n")
    assert (outcome.code, outcome.out.split(b"\t")[1:]) == (0, [b"t1", b"s1\n"])


def test_vectors_of_other_texts_are_refused(encoder, corpus, tmp_path):
    mine = ("mine", "--encoder", encoder, "-q", "--encoder-store", tmp_path / "kept", "-o", tmp_path / "m.tsv")
    assert run_inside(*mine, tmp_path / "s.txt", tmp_path / "t.txt").code == 0
    (tmp_path / "other").write_text("s1 s2\n")
    outcome = run_inside(*mine, tmp_path / "other", tmp_path / "t.txt")
    assert outcome.code == 1
    assert outcome.message.endswith("of another bitext; name another folder with --encoder-store")


def test_a_missing_faiss_is_reported(encoder, corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    outcome = run_inside(
        "mine", tmp_path / "s.txt", tmp_path / "t.txt", "--encoder", encoder, "--neighbour-search", "approximate", "-q"
    )
    assert (outcome.code, "phrasetool[mine]" in outcome.message) == (1, True)
