"""Which programs of Moses take a table, and the line they would choke on.

What each program does with an odd line was read in the sources of mosesdecoder (2025-02, 34452895): RuleTable/
LoaderStandard.cpp, Phrase.cpp, TargetPhrase.cpp; moses2 PhraseTableMemory.cpp; CompactPT/PhraseTableCreator.cpp and
BlockHashIndex; OnDiskPt/Main.cpp; probingpt/storing.cpp and StoreTarget.cpp; and observed in the programs themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moses_compat.tables.inspect import Oddity, TableSummary


@dataclass(frozen=True)
class Objection:
    """Something a program minds.

    Attributes:
        reason: what is wrong, and what comes of it.
        lines: how many lines have it.
        first: number of the first, from 1.
        stops: whether the table is of no use to the program; else it is read, but not as written.
    """

    reason: str
    lines: int
    first: int
    stops: bool


@dataclass(frozen=True)
class LoaderVerdict:
    """Whether a program takes a table.

    Attributes:
        loader: the program.
        options: what to give it, for the number of scores of this table.
        objections: what it minds; those that stop it first, then by line.
    """

    loader: str
    options: str
    objections: list[Objection] = field(default_factory=list)

    @property
    def answer(self) -> str:
        """`yes`, `yes, but` or `no`."""
        if not self.objections:
            return "yes"
        return "no" if self.objections[0].stops else "yes, but"


_NEGATIVE = {"negative score": "a score is negative: its logarithm is no number, and poisons every hypothesis"}
_ZERO = {"zero score": "a score is 0, which is read as exp(-100)"}
_INFINITE = {"infinite score": "a score is infinite"}
_SHORT = {
    "blank line": "a blank line",
    "fewer than 3 fields": "fewer than 3 fields",
}
_BAD_ALIGNMENT = {"bad alignment": "the alignment field holds more than source-target points"}
_NO_POINTS = {"bad alignment": "an alignment that is no list of points is not read as one"}
_CUT = {
    f"{kind} in a {side}": f"| in a {side} token that the others lack: the token is cut there"
    for side in ("source", "target")
    for kind in ("stray |", "too many factors")
}
_FACTORS = {
    f"{kind} in a {side}": f"a {side} token with {words}"
    for side in ("source", "target")
    for kind, words in (("too many factors", "more than 4 factors"), ("too few factors", "fewer factors than others"))
}
_STRAY = {key: reason for key, reason in _CUT.items() if key.startswith("stray")}
_DROPS = {
    "sparse scores": "sparse scores are left out",
    "properties": "properties are left out",
}
_JUNK = {"score is no number": "a score that is no number is read as far as it is one, or as 0"}
_AS_ZERO = {**_JUNK, "infinite score": "a score beyond a float's range is read as 0, or as the largest float"}
_LABEL = {"label at the end": "a last token in brackets is taken for a label and removed"}
_PROPERTY = {
    "bad property": "the seventh field holds more than {{Key value}}",
    "unknown property": "a property that Moses does not know",
}
_BEYOND_TARGET = {
    "alignment beyond the target": "an alignment point lies beyond the target, which is not checked; at one far beyond"
    " it the decoder crashes",
}
_SCORE_COUNT = "another number of scores"
_RETURNS = {"source comes back": "a source comes back after others: sort the table"}
_BARS = {"token of bars": "a token of bars alone has no factor"}

# Loader -> what stops it, what it takes but not as written.
_RULES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "moses": (
        {
            "empty first line": "the first line is empty",
            "first line of one token": "the first line is a single word, taken for a format's number",
            "first line of the Hiero format": "the first line begins with `[X] |||`, taken for the Hiero format",
            **_SHORT,
            "score is no number": "a score is not a number",
            "score is NaN": "a score is NaN",
            _SCORE_COUNT: "another number of scores than on the lines before",
            **_BAD_ALIGNMENT,
            "alignment of an empty target": "an alignment point of an empty target, at which the decoder crashes",
            "bracket inside": "a token in brackets inside a phrase is not of the form [A][B]",
            "non-terminals differ": "the alignment does not pair each non-terminal with one of the other side",
            **_PROPERTY,
            **_FACTORS,
            **_NEGATIVE,
        },
        {
            **_ZERO, **_INFINITE, **_LABEL, **_STRAY, **_BARS,
            "alignment beyond the phrase": "an alignment point lies beyond the phrase, which is not checked",
            **_BEYOND_TARGET,
            "non-terminal of the target alone": "a non-terminal of the target alone is written as its label",
            "empty source": "lines with an empty source are left out",
            "bad sparse scores": "the sixth field is not a list of names and numbers",
        },
    ),
    "moses2": (
        {
            **_SHORT, **_BAD_ALIGNMENT, **_NEGATIVE, **_BARS,
            "score is NaN": "a score is NaN",
            _SCORE_COUNT: "another number of scores, which is not checked: weights go to other columns",
        },
        {**_ZERO, **_INFINITE, **_STRAY, **_FACTORS, **_DROPS, **_JUNK, **_BEYOND_TARGET},
    ),
    "processPhraseTableMin": (
        {
            **_SHORT, **_NEGATIVE, **_RETURNS,
            _SCORE_COUNT: "another number of scores",
            "out of order without blanks": "not sorted: sort with LC_ALL=C",
            "alignment beyond the tokens": "an alignment point lies beyond the phrase, whose entry is lost",
            "gap inside a phrase": "two spaces or a tab between tokens, which hide the entry",
            **{key: reason for key, reason in _FACTORS.items() if key.startswith("too many")},
        },
        {
            "no alignment": "no alignment: needs -encoding None",
            "bad alignment": "an alignment that is no list of points: needs -encoding None",
            "pair comes twice": "a pair comes twice, which its hash cannot hold: needs -encoding None",
            **_ZERO, **_AS_ZERO, **_STRAY, **_DROPS, **_BARS,
            "score is NaN": "a score that is NaN is read as 0",
            "empty source": "lines with an empty source are of no use",
        },
    ),
    "CreateOnDiskPt": (
        {
            **_SHORT, **_NEGATIVE, **_RETURNS, **_PROPERTY, **_BARS,
            "first words come back": "the first words of a source come back after others: sort the table",
            "no space beside |||": "no space on a side of |||",
            "tab": "a tab, which does not separate here",
            "zero byte": "a zero byte, which ends the line",
            _SCORE_COUNT: "another number of scores, which is not checked: memory is overwritten",
            "empty target": "an empty target, which the decoder refuses",
            "alignment beyond the target": "an alignment point beyond the target, at which the decoder crashes",
            "empty brackets": "a token of empty brackets, which its vocabulary cannot hold",
            **{key: "a target token with more factors than others" for key in _CUT if key.endswith("target")},
        },
        {
            "out of order": "not sorted: it fails where the first words of a source come back",
            "token in brackets": "the brackets of a token in brackets are removed",
            **_ZERO, **_AS_ZERO, **_NO_POINTS,
            **{key: reason for key, reason in _CUT.items() if key.endswith("source")},
            "score is NaN": "a score that is NaN is read as 0",
        },
    ),
    "CreateProbingPT": (
        {
            **_SHORT, **_NEGATIVE, **_RETURNS, **_BARS,
            _SCORE_COUNT: "another number of scores, which is not checked: all that follows is garbage",
            "gap between tokens": "two spaces or a tab between tokens make an empty token",
            "empty source": "an empty source, with which the decoder cannot load the table",
            "empty target": "an empty target, with which the decoder cannot load the table",
            "score is NaN": "a score is NaN",
            "too many beginnings": "its hash table has room for 1.2 keys a source, and these rules need more",
        },
        {**_ZERO, **_INFINITE, **_JUNK, **_CUT, **_DROPS, **_NO_POINTS},
    ),
}  # fmt: skip


def objections_of(loader: str, oddities: Mapping[str, Oddity]) -> list[Objection]:
    """What a program minds of a table; what stops it first, then by line.

    Args:
        loader: the program.
        oddities: name -> lines, as `TableSummary` has them.
    """
    stops, minds = _RULES[loader]
    found = [
        Objection(reason, oddities[name].lines, oddities[name].first, names is stops)
        for names in (stops, minds)
        for name, reason in names.items()
        if name in oddities
    ]
    return sorted(found, key=lambda objection: (not objection.stops, objection.first))


def verdicts(summary: TableSummary) -> list[LoaderVerdict]:
    """What each program of Moses makes of a table that `inspect_table` read; none for a file that is no table."""
    if summary.entries - summary.faults <= 0 or "table" not in summary.kind:
        return []
    rules = summary.kind.startswith("rule table")
    scores = summary.scores
    for_memory = f"num-features={scores}"
    if summary.factors != (1, 1):
        for_memory += f" {factor_options(summary.factors)}"
    options = {
        "moses": for_memory,
        "moses2": for_memory,
        "processPhraseTableMin": f"-nscores {scores}" + ("" if scores == 4 else " -rankscore 2" if scores > 2 else ""),
        "CreateOnDiskPt": f"{summary.factors[0]} {summary.factors[1]} {scores} 100 {min(2, scores - 1)}",
        "CreateProbingPT": f"--num-scores {scores}" + (" --scfg" if rules else ""),
    }
    # In a rule table, a label at the end is what belongs there.
    harmless = {"label at the end", "token in brackets"} if rules else set[str]()
    if summary.prefixes_known:
        # They decide, not the order.
        harmless |= {"out of order"}
    found = []
    for loader in _RULES:
        objections = objections_of(
            loader, {name: odd for name, odd in summary.oddities.items() if name not in harmless}
        )
        if rules and loader == "processPhraseTableMin":
            objections.insert(0, Objection("rule tables are not supported", summary.rules, 1, True))
        found.append(LoaderVerdict(loader, options[loader], objections))
    return found


def factor_options(factors: tuple[int, int]) -> str:
    """Return the arguments of a moses.ini for so many factors of a source and a target token."""
    source, target = (",".join(map(str, range(count))) for count in factors)
    return f"input-factor={source} output-factor={target}"
