"""Aligned sentence pairs, random or built from lists."""

from hypothesis import strategies as st

from phrasetool.smt.aligning.alignments import Bitext
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.extraction.phrase_table import PhraseTable
from tests.listed_alignments import alignments_of


def bitext_of(sources, targets, alignments):
    """Build a bitext from lists of lists of words."""
    source_symbols, target_symbols = Symbols(), Symbols()
    read = [
        symbols.read_lines(b"".join(b" ".join(sentence) + b"\n" for sentence in sentences))
        for symbols, sentences in ((source_symbols, sources), (target_symbols, targets))
    ]
    return Bitext(*read, alignments_of(alignments), source_symbols, target_symbols)


def extract_phrase_pairs(bitext, max_length=7, smoothing="none"):
    """Return the whole phrase table of a bitext with at least one phrase pair, and no more than fit into one block."""
    with PhraseTable(bitext, max_length, smoothing) as table:
        (block,) = table.blocks()
        return table.entries(block)


@st.composite
def sentence_pairs(draw, words=(b"a", b"b", b"c"), most=6):
    source = draw(st.lists(st.sampled_from(words), min_size=1, max_size=most))
    target = draw(st.lists(st.sampled_from(words), min_size=1, max_size=most))
    point = st.tuples(st.integers(0, len(source) - 1), st.integers(0, len(target) - 1))
    return source, target, sorted(draw(st.sets(point, max_size=8)))
