import json
import math
import re

import pytest
from sacrebleu import corpus_chrf

from tests.commands import run_inside, write

TRUTH = "a man , a dog and the cat &apos;s ball .\ntwo women ride a blue bike .\nthe dog runs on the grass .\n" * 4
WORSE = TRUTH.replace("dog", "cat").replace("women", "men").replace("blue bike", "bike")
BETTER = TRUTH.replace("women", "men")
CASES = [("2016_flickr", 41.79), ("2017_flickr", 37.38), ("2017_mscoco", 28.22), ("2018_flickr", 33.89)]


@pytest.fixture
def texts(tmp_path):
    contents = {"truth.en": TRUTH, "better.en": BETTER, "worse.en.gz": WORSE}
    return {name: str(write(tmp_path / name, text.encode())) for name, text in contents.items()}


def run(*arguments, **options):
    return run_inside("evaluate", *arguments, **options)


def text_of(*arguments, **options):
    """Return the standard output of a run that succeeds."""
    outcome = run(*arguments, **options)
    assert outcome.code == 0, outcome.err
    return outcome.out.decode()


def test_the_text_output(texts):
    result = text_of(texts["better.en"], texts["worse.en.gz"], "-r", texts["truth.en"], "--samples", 100)
    lines = result.splitlines()
    assert lines[0] == f"12 lines, 1 reference ({texts['truth.en']})"
    assert "without tokenisation (--tokenize none)" in lines[1]
    assert "looks tokenised, lower-cased and escaped for Moses" in lines[2]
    titles = [line.split() for line in lines if "is better" in line]
    assert [title[:2] for title in titles] == [["BLEU,", "more"], ["chrF2,", "more"], ["TER,", "less"]]
    assert all(title[4:] == ["score", "95", "%", "difference", "95", "%", "p"] for title in titles)
    rows = [line for line in lines if "worse.en.gz" in line]
    assert len(rows) == 3
    for row in rows:
        assert re.fullmatch(
            r"  worse\.en\.gz +\d+\.\d\d +±\d+\.\d\d +[+-]\d+\.\d\d +[+-]\d+\.\d\d to [+-]\d+\.\d\d +0\.\d{4} \*", row
        )
    assert len([line for line in lines if "better.en (baseline)" in line]) == 3
    assert len([line for line in lines if line.startswith("  nrefs:1|bs:100|seed:12345|")]) == 3
    assert lines[-1] == "* p < 0.05, and an interval without 0"
    assert max(map(len, lines)) <= 130


def test_one_system_has_no_comparison(texts):
    result = text_of(texts["better.en"], "--reference", texts["truth.en"], "--metrics", "BLEU,bleu", "--samples", 20)
    assert "baseline" not in result
    assert "difference" not in result
    assert result.count("is better") == 1


def test_json(texts):
    result = text_of(
        texts["better.en"], texts["worse.en.gz"], "-r", texts["truth.en"], "-r", texts["truth.en"],
        "--metrics", "ter,bleu", "--paired", "approximate-randomization", "--samples", 200, "--seed", 3, "--json",
    )  # fmt: skip
    report = json.loads(result)
    assert report["schema_version"] == 1
    assert report["lines"] == 12
    assert len(report["references"]) == 2
    assert [metric["name"] for metric in report["metrics"]] == ["TER", "BLEU"]
    assert [metric["higher_is_better"] for metric in report["metrics"]] == [False, True]
    for metric in report["metrics"]:
        assert re.search(r"nrefs:2\|bs:1000\|ar:200\|seed:3\|", metric["signature"])
        first, second = metric["systems"]
        assert (first["file"], second["file"]) == (texts["better.en"], texts["worse.en.gz"])
        assert first["p_value"] is None
        assert second["difference"] == second["score"] - first["score"]
        assert second["p_value"] < 0.05


def test_a_margin_gives_verdicts(texts):
    files = (texts["worse.en.gz"], texts["better.en"], "-r", texts["truth.en"])
    better = text_of(*files, "--margin", "0.3")
    assert better.count("  better.en is non-inferior (margin 0.3)\n") == 3
    worse = text_of(files[1], files[0], *files[2:], "--margin", "0.3")
    assert worse.count("  worse.en.gz is not shown to be non-inferior (margin 0.3)\n") == 3
    assert "inferior" not in text_of(*files)
    report = json.loads(text_of(*files, "--margin", "0.3", "--json"))
    assert report["margin"] == 0.3
    assert [["non_inferior" in system for system in metric["systems"]] for metric in report["metrics"]] == [
        [False, True]
    ] * 3
    alone = run(files[0], *files[2:], "--margin", "0.3")
    assert alone.code == 2
    assert "--margin is for comparing systems" in alone.message
    assert run(*files, "--margin", "0").code == 2


def test_consecutive_files_are_runs_of_one_system(texts, tmp_path):
    files = [write(tmp_path / name, text.encode()) for name, text in [
        ("base.1", WORSE), ("base.2", TRUTH.replace("dog", "cat")), ("new.1", BETTER), ("new.2", BETTER),
    ]]  # fmt: skip
    options = (*files, "-r", texts["truth.en"], "--metrics", "bleu", "--samples", 20)
    result = text_of(*options, "--runs", 2, "--margin", 1)
    assert re.search(r"\n  base\.1, 2 runs \(baseline\) +\d+\.\d\d +\d+\.\d\d +±", result)
    assert "\n  new.1 is non-inferior (margin 1)\n" in result
    assert f"Warning: {files[3]} and {files[2]} are equal, but count as two runs." in result
    first, second = json.loads(text_of(*options, "--runs", 2, "--json"))["metrics"][0]["systems"]
    assert (first["files"], second["files"]) == ([str(f) for f in files[:2]], [str(f) for f in files[2:]])
    assert first["score"] == sum(first["run_scores"]) / 2
    assert (len(set(first["run_scores"])), len(set(second["run_scores"]))) == (2, 1)
    each = json.loads(text_of(*options, "--json"))["metrics"][0]["systems"]
    assert [*first["run_scores"], *second["run_scores"]] == [system["score"] for system in each]
    uneven = run(*options, "--runs", 3)
    assert uneven.code == 2
    assert "--runs 3: 4 files are not 3 of each system" in uneven.message
    assert run(*options, "--runs", 4, "--margin", 1).code == 2


def test_files_with_the_same_name_are_distinguished(texts, tmp_path):
    (tmp_path / "other").mkdir()
    namesake = write(tmp_path / "other" / "better.en", WORSE.encode())
    result = text_of(texts["better.en"], namesake, "-r", texts["truth.en"], "--metrics", "bleu", "--samples", 20)
    assert str(namesake) in result


def test_mismatched_texts_are_reported(texts, tmp_path):
    plain = write(tmp_path / "plain.en", b"A man, a dog.\nTwo women.\nThe dog runs.\n" * 4)
    result = text_of(plain, "-r", texts["truth.en"], "--metrics", "bleu", "--samples", 20)
    assert f"Warning: {texts['truth.en']} looks tokenised, {plain} does not." in result
    assert f"Warning: {texts['truth.en']} looks lower-cased, {plain} does not." in result
    twice = text_of(
        texts["better.en"], "-r", texts["truth.en"], "--metrics", "bleu", "--samples", 20, "--tokenize", "13a"
    )
    assert "(--tokenize 13a)" in twice
    assert "tokenised twice" in twice
    none = text_of(plain, "-r", plain, "--metrics", "bleu", "--samples", 20)
    assert "looks" not in none


@pytest.mark.parametrize(("translation", "warns"), [("a big dog .", False), ("it 's a dog .", True), ("R & D .", True)])
def test_only_a_text_with_something_to_escape_lacks_escapes(tmp_path, translation, warns):
    reference = write(tmp_path / "ref", b"it &apos;s a dog .\n" * 3)
    system = write(tmp_path / "hyp", (translation.lower() + "\n").encode() * 3)
    result = text_of(system, "-r", reference, "--metrics", "bleu", "--samples", 20)
    assert (f"Warning: {reference} looks escaped for Moses (&apos;), {system} does not." in result) == warns


def test_bytes_that_are_not_utf8_and_line_ends(texts, tmp_path):
    latin = write(tmp_path / "latin.en", TRUTH.replace("bike", "caf\xe9").replace("\n", "\r\n").encode("latin-1"))
    same = write(tmp_path / "same.en", TRUTH.replace("bike", "caf\xe9").removesuffix("\n").encode("latin-1"))
    result = text_of(latin, "-r", same, "--metrics", "bleu", "--samples", 20)
    assert "100.00" in result
    assert f"Warning: {latin} is not UTF-8" in result


def test_only_line_feeds_end_lines(tmp_path):
    odd = write(tmp_path / "odd.en", "a b c\u2028d e\x0bf\x85g\nh i j k\n".encode())
    result = text_of(odd, "-r", odd, "--metrics", "bleu", "--samples", 20)
    assert result.startswith("2 lines")


def test_standard_input(texts):
    result = text_of("-", "-r", texts["truth.en"], "--metrics", "bleu", "--samples", 20, stdin=TRUTH.encode())
    assert "100.00" in result
    assert run("-", "-r", "-", stdin=TRUTH.encode()).code == 2


def error_message(*arguments):
    """Return the error message of a run that fails."""
    outcome = run(*arguments)
    assert outcome.code == 1
    assert outcome.out == b""
    return outcome.message.removeprefix("phrasetool: ")


def test_different_numbers_of_lines_are_named(texts, tmp_path):
    short = write(tmp_path / "short.en", TRUTH.partition("\n")[0].encode())
    message = f"has 1 lines, but the reference {texts['truth.en']} has 12"
    assert error_message(short, "-r", texts["truth.en"]) == f"{short}: {message}"
    assert error_message(texts["better.en"], short, "-r", texts["truth.en"]) == f"{short}: {message}"
    expected = f"{texts['better.en']}: has 12 lines, but the reference {short} has 1"
    assert error_message(texts["better.en"], "-r", texts["truth.en"], "-r", short) == expected


def test_files_that_cannot_be_read(texts, tmp_path):
    empty = write(tmp_path / "empty.en", b"")
    assert error_message(empty, "-r", texts["truth.en"]) == f"{empty}: the file has no lines"
    missing = tmp_path / "missing.en"
    assert error_message(texts["better.en"], "-r", missing) == f"{missing}: No such file or directory"


@pytest.mark.parametrize(
    "options",
    [
        ["--metrics", "meteor"],
        ["--metrics", ""],
        ["--seed", 0],
        ["--samples", 0],
        ["--tokenize", "moses"],
        ["--paired", "t"],
        ["--margin", "nan"],
        ["--margin", "inf"],
    ],
)
def test_bad_usage(texts, options):
    assert run(texts["better.en"], texts["better.en"], "-r", texts["truth.en"], *options).code == 2


def test_a_reference_is_needed(texts):
    assert run(texts["better.en"]).code == 2


@pytest.mark.requires_reference
@pytest.mark.parametrize(("name", "bleu"), CASES)
def test_the_reference_run(reference, name, bleu):
    hypothesis, truth = reference / f"test_{name}.moses.en", reference.parent / f"test_{name}.en"
    result = text_of(hypothesis, "-r", truth, "--metrics", "bleu", "--samples", 20, "--json")
    assert round(json.loads(result)["metrics"][0]["systems"][0]["score"], 2) == bleu


def test_a_text_in_another_language_is_reported(tmp_path):
    write(tmp_path / "ref", b"the house is green .\n" * 20)
    write(tmp_path / "hyp", b"das haus ist gr\xc3\xbcn\n" * 20)
    warning = f"Warning: BLEU of {tmp_path / 'hyp'} is 0.00, and 0.0 % of its words are in the reference of their line"
    assert warning in text_of(tmp_path / "hyp", "-r", tmp_path / "ref")
    # --quiet keeps warnings and suppresses information.
    quiet = text_of(tmp_path / "hyp", "-r", tmp_path / "ref", "-q")
    assert warning in quiet
    assert "Text was scored as it is" not in quiet


def test_a_reference_in_the_source_language_is_reported(reference):
    """BLEU is low but not 0, because sentences share names, numbers and punctuation with their source."""
    hypothesis, source = reference / "test_2016_flickr.moses.en", reference.parent / "test_2016_flickr.de"
    assert ": another text, language or order of lines?" in text_of(
        hypothesis, "-r", source, "--metrics", "bleu", "--samples", 2
    )


def test_samples_without_a_match_or_a_word(tmp_path):
    # Two of the three lines have no match: sacrebleu scores such samples as floats, others as numpy.float32.
    truth, poor = write(tmp_path / "truth", b"a b c d\nb c d e\nc d e f\n"), write(tmp_path / "poor", b"a b c d\n\nx\n")
    result = text_of(poor, "-r", truth, "--samples", 100)
    assert f"Warning: 1 of 3 lines of {poor} have no words." in result
    rows = [line.split() for line in result.splitlines() if line.startswith("  poor")]
    # BLEU by hand: precisions 4/5, 3/3, 2/2, 1/1, and 5 words for 12 of the reference.
    chrf = corpus_chrf(["a b c d", "", "x"], [["a b c d", "b c d e", "c d e f"]]).score
    assert [row[1] for row in rows] == [f"{100 * 0.8**0.25 * math.exp(1 - 12 / 5):.2f}", f"{chrf:.2f}", "66.67"]
    empty, half = write(tmp_path / "empty", b"\n\n"), write(tmp_path / "half", b"a b\n\n")
    assert "ter" in text_of(empty, half, "-r", half, "--metrics", "ter", "--samples", 100).lower()


def test_a_reference_without_a_word_and_a_system_named_twice(texts, tmp_path):
    blank = write(tmp_path / "blank", b"\n \n" * 6)
    outcome = run(texts["better.en"], "-r", blank)
    assert (outcome.code, outcome.message) == (
        1,
        f"phrasetool: {blank}: has no words; expected one translation per line",
    )
    twice = run(texts["better.en"], texts["better.en"], "-r", texts["truth.en"])
    assert (twice.code, "named twice" in twice.message) == (2, True)
    assert run(texts["better.en"], "-r", texts["truth.en"], "--samples", 1).code == 2


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u2028", "\x85", "\v", "\x1c"])
def test_words_that_sacrebleu_splits_are_counted(tmp_path, space):
    odd = write(tmp_path / "odd", f"the number 12{space}345 is\n{space}x is one word\n".encode())
    result = text_of(odd, "-r", odd, "--metrics", "bleu", "--samples", 2)
    assert result.startswith("2 lines,")
    assert result.count(f"Warning: 2 words of {odd} contain white space other than spaces and tabs") == 1


def test_lines_that_are_too_long_for_ter(tmp_path):
    """The table of edit distances would exhaust memory."""
    texts = [write(tmp_path / name, b"a b\n" + b"a b c d " * 25_000 + b"\n") for name in ("translation", "reference")]
    outcome = run_inside("evaluate", texts[0], "-r", texts[1], "--samples", 2)
    assert outcome.code == 1
    assert outcome.message.startswith(
        f"phrasetool: {texts[0]}:2: the line has 100,000 words and its reference 100,000, too many for TER"
    )
    outcome = run_inside("evaluate", texts[0], "-r", texts[1], "--samples", 2, "--metrics", "bleu,chrf")
    assert (outcome.code, outcome.err) == (0, "")
