"""`inspect --tagger`: entries whose part-of-speech sequences occur in no sentence pair."""

import json
from collections import Counter

import pytest

from moses_compat.jobs import inspect
from tests.commands import run_inside, write
from tests.syntax_models import toy_lines

SENTENCES = toy_lines(40, 1)


def has(sentence, wanted):
    return any(sentence[i : i + len(wanted)] == wanted for i in range(len(sentence)))


def entries():
    """Return parts of the sentence pairs; every second source sentence is paired with another target sentence."""
    pairs = []
    for i, (source, target) in enumerate(zip(*SENTENCES, strict=True)):
        source_words, target_words = source.split(), SENTENCES[1][(i * 7 + 3) % 40].split() if i % 2 else target.split()
        pairs += [
            (" ".join(source_words[a : a + 2]), " ".join(target_words[b : b + 3])) for a in range(3) for b in range(3)
        ]
    return sorted({pair for pair in pairs if all(pair)})


@pytest.fixture
def files(tmp_path):
    lines = [f"{source} ||| {target} ||| 0.5 0.5 0.5 0.5\n" for source, target in entries()]
    table = write(tmp_path / "t.gz", ("[X] ||| [X] ||| 1 1 1 1\n" + "".join(lines)).encode())
    texts = [
        write(tmp_path / f"s.{i}", "".join(f"{line}\n" for line in side[:15]).encode())
        for i, side in enumerate(SENTENCES)
    ]
    return table, *texts


def test_support_equals_that_of_a_naive_search(files, toy_tagger_folder, toy_tagger, tmp_path, monkeypatch):
    table, source, target = files
    command = ("inspect", table, "--tagger", toy_tagger_folder, "--language-bitext", "en", source, "de", target)
    outcome = run_inside(*command, "--json", tmp_path / "found.json", "--threads", 1)
    assert outcome.code == 0, outcome.err
    report = json.loads((tmp_path / "found.json").read_text())["parts_of_speech"]
    tagged = [
        [toy_tagger.tag([line.split()], language)[0] for line in side[:15]]
        for side, language in zip(SENTENCES, ("en", "de"), strict=True)
    ]
    missing = Counter()
    for pair in entries():
        expected = [
            toy_tagger.tag([text.split()], language)[0] for text, language in zip(pair, ("en", "de"), strict=True)
        ]
        if not any(has(one, expected[0]) and has(other, expected[1]) for one, other in zip(*tagged, strict=True)):
            missing[" ".join(expected[0]), " ".join(expected[1])] += 1
    assert 0 < missing.total() < len(entries())
    assert (report["entries"], report["supported"]) == (len(entries()), len(entries()) - missing.total())
    shown = report["unsupported"]
    assert [one["entries"] for one in shown] == sorted(missing.values(), reverse=True)[: inspect.SHOWN]
    for one in shown:
        assert missing[one["source"], one["target"]] == one["entries"]
        assert tuple(one["example"]) in entries()
        assert f"{one['source']} ||| {one['target']}" in outcome.out.decode()
    assert 0 < report["chance"] < 1
    monkeypatch.setattr(inspect, "_TEXTS", 3)
    monkeypatch.setattr(inspect, "_SENTENCES", 4)
    assert run_inside(*command, "--threads", 2).out == outcome.out


def test_invalid_usage(files, toy_tagger_folder, tmp_path):
    table, source, target = files
    bitext = ("--language-bitext", "en", source, "de", target)
    tagger = ("--tagger", toy_tagger_folder)
    for arguments, code, message in (
        ((table, *tagger), 2, "--tagger and --language-bitext LANG FILE LANG FILE must be given together"),
        ((table, *bitext), 2, "--tagger and --language-bitext LANG FILE LANG FILE must be given together"),
        (("-", *tagger, *bitext), 2, "--tagger is for a phrase table in a file, which is read twice"),
        ((tmp_path, *tagger, *bitext), 2, "--tagger is for a phrase table in a file, which is read twice"),
        (
            (table, *tagger, "--language-bitext", "en", source, "fr", target),
            2,
            "unknown language 'fr'; the tagger knows en, de",
        ),
        ((table, *tagger, "--language-bitext", "en", source, "de", table), 1, "has"),
    ):
        outcome = run_inside("inspect", *arguments, "-q")
        assert (outcome.code, message in outcome.message) == (code, True), outcome.err
        assert outcome.out == b""
