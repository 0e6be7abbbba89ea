"""Does the search prune like Moses at every beam threshold?  Model scores of both, for each search and threshold.

With a tight beam, the first hypothesis that enters a stack decides which others are accepted.  Moses expands the
hypotheses of a stack in the order of a hash table, which our search does not reproduce.
"""

from __future__ import annotations

import argparse

from measuring import reference, report
from real_decoders import SEARCHES, Decoders, compared

# The first is Moses' default.
THRESHOLDS = ("1e-5", "0.001", "0.01", "0.1", "0.3", "0.5")
TEST = "test_2016_flickr"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="translate each Nth sentence")
    every = parser.parse_args().every
    folder = reference()
    sentences = (folder.parent / f"{TEST}.de").read_text().splitlines()[::every]
    figures: dict = {"test": TEST, "sentences": len(sentences)}
    for search in SEARCHES:
        figures[search] = {}
        for beam in THRESHOLDS:
            decoders = Decoders(folder, sentences, beam)
            figures[search][beam] = compared(*(decoders.scores(name, search) for name in ("phrasetool", "moses")))
            print(search, beam, figures[search][beam], flush=True)
    report("beam_threshold", figures)


if __name__ == "__main__":
    main()
