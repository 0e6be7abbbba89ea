"""Targets: alignments, training pairs, bitexts, treebanks, dictionaries, tagged texts, priors, mined pairs."""

from __future__ import annotations

from moses_compat.corpora.bitexts import format_alignments, read_alignments, read_priors, read_sentence_pairs
from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.corpora.translated_texts import read_dictionary
from moses_compat.corpora.treebanks import read_conllu, read_tagged_text
from moses_compat.files.streams import Input
from moses_compat.jobs.mine import read_gold, read_mined
from phrasetool.errors import PhraseToolError
from phrasetool.smt.aligning.alignments import symmetrise
from tests.fuzz.target import Target, Wrong, written
from tests.toy_treebanks import conllu, toy_sentences


def _run_alignments(data: bytes) -> int:
    """Read each line separately, because a malformed line stops the reading of a file."""
    refused = 0
    good = []
    for line in data.split(b"\n"):
        try:
            good.append(read_alignments(written("a", line)))
        except PhraseToolError:
            refused += 1
            continue
        rewritten = format_alignments(good[-1])
        if format_alignments(read_alignments(written("b", rewritten))) != rewritten:
            raise Wrong(f"{line!r} is written as {rewritten!r}, and read as something else")
    for alignments in good[:5]:
        symmetrise(alignments, alignments)
    return refused


def _run_pairs(data: bytes) -> None:
    with Input(written("pairs", data)) as source:
        pairs = read_training_pairs(source)
    if len(pairs.sources) != len(pairs.targets):
        raise Wrong("sides of different length")


def _run_texts(data: bytes) -> None:
    first, _, second = data.partition(b"\n\n")
    sources, targets, *_ = read_sentence_pairs(written("s", first), written("t", second))
    if len(sources) != len(targets):
        raise Wrong("sides of different length")


_BANK = conllu(toy_sentences("en", 3, 1))
_PRIORS = b"LEX\tdas\tthe\t30\nLEX\thaus\thouse\t9\nHMMF\t1\t20\nHMMR\t-1\t2\nFERF\tdas\t1\t5\nFERR\tthe\t2\t1.5\n"
_MINED = b"1.25\tein haus\ta house\n1.1\tdas\tthe\n0.5\tx\ty\n"

TARGETS = (
    Target("alignments", [b"0-0 1-1 2-2", b"0-0", b"", b"3-1 2-2 0-5 0-5", b"11-0 7-12"], _run_alignments,
           (b"-", b"0-0", b" 1-", b"0-0-0", b":", b"  "), lines=20, head=b"0-0"),
    Target("pairs", [b"das ||| the ||| 3\nein haus ||| a house ||| 2.5\nx ||| y\n",
                     b"a ||| b ||| 0.5 0.25 ||| 0-0\n" * 3], _run_pairs, (b"|||", b" ||| ", b"1e9", b"0-0")),
    Target("bitext", [b"a b c\nd e\n\nA B C\nD E\n", b"x\n\ny\n", b"\n\n"], _run_texts, (b"\n\n", b"  ")),
    Target("treebank", [_BANK], lambda data: _use(read_conllu(written("b", data))),
           (b"\t", b"1-2\t", b"1.1\t", b"_", b"# ", b"NOUN", b"\n\n")),
    Target("dictionary", [b"das ||| the\nhaus ||| house\n", b"das the 0.5\ndas that 0.25\n", b"a b\n"],
           lambda data: _use(read_dictionary(written("d", data))), (b"|||", b" ")),
    Target("tagged text", [b"das|DET haus|NOUN\nim|ADP+DET x|X\n"],
           lambda data: _use(read_tagged_text(written("g", data))), (b"|", b"|NOUN", b"+", b"|ADP+DET")),
    Target("priors", [_PRIORS], lambda data: _use(read_priors(written("p", data))),
           (b"LEX\t", b"HMMF\t", b"FERF\t", b"FERR\t", b"\t")),
    Target("mined pairs", [_MINED], lambda data: _use(read_mined(written("m", data)), read_gold(written("m", data))),
           (b"\t", b"\t\t")),
)  # fmt: skip


def _use(*found: object) -> None:
    """Discard results; the target only reads the input."""
