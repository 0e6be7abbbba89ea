"""Random sequences of spans that a decoder can cover."""

import numpy as np
from hypothesis import strategies as st

from phrasetool.smt.decoder.hypotheses import WINDOW

EMPTY = np.uint64(0)
LENGTHS = st.sampled_from([1, 5, 64, 65, 130])


@st.composite
def spans(draw, length=LENGTHS, most=40):
    """Draw spans that can be covered one after another: free, and less than a window after the first gap."""
    n, covered, result = draw(length), set(), []
    for _ in range(draw(st.integers(0, most))):
        gap = next(i for i in range(n + 1) if i not in covered)
        free = [i for i in range(gap, min(n, gap + WINDOW)) if i not in covered]
        if not free:
            break
        # Often the first gap, so that the window moves.
        start = draw(st.one_of(st.just(free[0]), st.sampled_from(free)))
        end = start
        while end + 1 < min(n, gap + WINDOW) and end + 1 not in covered and draw(st.booleans()):
            end += 1
        covered |= set(range(start, end + 1))
        result.append((start, end))
    return n, result
