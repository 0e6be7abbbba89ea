"""Sentences beyond a limit of the decoder cause a warning."""

import pytest

from tests.commands import run_inside, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    write(folder / "table", b"das ||| the ||| 1 1 1 1 ||| 0-0 ||| 1 1 1\n")
    write(folder / "text", b"the the\n" * 9)
    assert run_inside("lm", folder / "text", "--order", 2, "-o", folder / "lm", "-q").code == 0
    for limit in (-1, 6, 44, 45):
        options = ("--distortion-limit", limit, "-o", folder / f"ini{limit}", "-q")
        assert run_inside("moses-ini", "--table", folder / "table", "--lm", folder / "lm", *options).code == 0
    for words in (64, 65):
        write(folder / f"s{words}", b" ".join([b"das"] * words) + b"\n")
        write(folder / f"t{words}", b" ".join([b"the"] * words) + b"\n")
    return folder


@pytest.mark.parametrize(
    ("limit", "words", "warns"), [(-1, 65, True), (45, 65, True), (44, 65, False), (6, 65, False), (-1, 64, False)]
)
def test_sentences_longer_than_the_window_of_the_decoder(folder, limit, words, warns):
    ini = ("--moses-ini", folder / f"ini{limit}")
    fast = ("--search", "cube", "--pop-limit", 2)
    text, reference = folder / f"s{words}", folder / f"t{words}"
    limit_description = "without a distortion limit" if limit < 0 else f"at a distortion limit of {limit}"
    message = f"{text}: 1 sentences have more than 64 words; {limit_description}, phrases that end 64 words or more"
    for command in (("decode", *ini, text, *fast), ("force-decode", *ini, text, reference, "--stack", 2)):
        outcome = run_inside(*command, "-o", folder / "out", "-q")
        assert outcome.code == 0, outcome.err
        assert (message in outcome.err) == warns
    outcome = run_inside("decode", "--moses-ini", folder / "ini6", text, *fast, "--distortion-limit", limit, "-o",
                         folder / "out", "-q")  # fmt: skip
    assert (message in outcome.err) == warns
