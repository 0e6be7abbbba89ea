"""Reader of n-best lists, for those of Moses and of phrasetool."""

from dataclasses import dataclass

from moses_compat.files.streams import Input


@dataclass(frozen=True)
class Candidate:
    """A line of an n-best list.

    `spans` are (source start, source end, target start, target end), inclusive; empty if the line has no alignment.
    """

    sentence: int
    words: list
    features: dict
    total: float
    spans: list


def _read_span(text):
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def read_n_best(path):
    """Yield the candidates of a plain or gzip-compressed file."""
    with Input(path) as source:
        lines = source.read_all().splitlines()
    for line in lines:
        fields = line.split(b"|||")
        features = {}
        for token in fields[2].decode().split():
            if token.endswith("="):
                name = token[:-1]
                features[name] = []
            else:
                features[name].append(float(token))
        spans = []
        for pair in fields[4].decode().split() if len(fields) > 4 else []:
            left, _, right = pair.partition("=")
            if right:
                spans.append((*_read_span(left), *_read_span(right)))
        yield Candidate(int(fields[0]), fields[1].split(), features, float(fields[3]), spans)
