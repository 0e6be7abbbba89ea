"""The sections of a moses.ini that Moses 4 has, and the values with which each leaves translations as they are.

A decoder must not pass over a section that changes what Moses prints.  So each section of an ini is in one of four
classes: Moses reads it for something else than the translation of text by phrases (`_IRRELEVANT`), it has a value with
which nothing changes (`_NEUTRAL`), the decoder supports it, or the ini is refused.  Facts from moses/Parameter.cpp,
moses/parameters/*.cpp and moses/StaticData.cpp: a section without values does not count, the first value counts where
one is expected, and an unknown section ends Moses.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from moses_compat.ini.moses_ini import WORD, MosesIni, boolean, parse_number
from moses_compat.ini.reading import VERSION_1

# Threads, logging and servers; caches and binary tables; settings of searches, input types and decision rules that
# need another section to be used at all; sections that no part of Moses reads.
_IRRELEVANT = (
    "threads", "verbose", "description", "server-port", "server-log", "serial", "server-maxconn",
    "server-maxconn-backlog", "server-keepalive-maxconn", "server-keepalive-timeout", "server-timeout",
    "session-timeout", "session-cache-size", "clean-lm-cache",
    "mbr-size", "mbr-scale", "lmbr-p", "lmbr-r", "lmbr-thetas", "lmbr-map-weight", "lmbr-pruning-factor",
    "max-chart-span", "non-terminals", "rule-limit", "source-label-overlap", "unknown-lhs",
    "s2t-parsing-algorithm", "xml-brackets",
    "link-param-count", "references", "distortion", "lmodel-oov-feature",
)  # fmt: skip

# Sections that only a command which prints translations supports; others refuse what is not neutral.
PRINTED = ("mark-unknown", "weight-overwrite")
SUPPORTED = (
    "feature", "weight", "mapping", "decoding-graph-backoff", "search-algorithm", "stack", "cube-pruning-pop-limit",
    "beam-threshold", "distortion-limit", "max-phrase-length", "max-trans-opt-per-coverage", "unknown-word-prefix",
    "unknown-word-suffix", "print-alignment-info", *PRINTED,
)  # fmt: skip

# One-letter and other short names that Moses has on its command line; in an ini it passes over them.
_SHORT = {
    "f": "config", "i": "input-file", "v": "verbose", "fd": "factor-delimiter", "b": "beam-threshold",
    "edt": "early-discarding-threshold", "s": "stack", "sd": "stack-diversity", "wf": "weight-file",
    "tot": "translation-option-threshold", "dd": "disable-discarding", "da": "phrase-drop-allowed", "th": "threads",
    "dl": "distortion-limit", "mp": "monotone-at-punctuation", "edc": "early-distortion-cost",
    "cbp": "cube-pruning-pop-limit", "cbd": "cube-pruning-diversity", "cbls": "cube-pruning-lazy-scoring",
    "cbds": "cube-pruning-deterministic-search", "mbr": "minimum-bayes-risk", "lmbr": "lminimum-bayes-risk",
    "con": "consensus-decoding", "du": "drop-unknown", "mu": "mark-unknown", "xi": "xml-input", "xb": "xml-brackets",
    "aws": "alternate-weight-setting", "T": "translation-details", "owg": "output-word-graph",
    "Ttree": "tree-translation-details", "t": "report-segmentation", "tt": "report-segmentation-enriched",
    "Tall": "translation-all-details", "osg": "output-search-graph", "osgx": "output-search-graph-extended",
    "usg": "unpruned-search-graph", "slf": "output-search-graph-slf", "lhssg": "include-lhs-in-search-graph",
    "dpb": "decoding-graph-backoff", "r": "recover-input-path", "slm": "weight-slm", "bl": "weight-bl",
    "d": "weight-d", "dlm": "weight-dlm", "lr": "weight-lr", "g": "weight-generation", "I": "weight-i",
    "lm": "weight-l", "lex": "weight-lex", "glm": "weight-glm", "wt": "weight-wt", "pp": "weight-pp",
    "pb": "weight-pb", "tm": "weight-t", "w": "weight-w", "u": "weight-u", "e": "weight-e",
    "gl": "global-lexical-file",
}  # fmt: skip

_Neutral = Callable[[Sequence[str]], bool]


def _off(values: Sequence[str]) -> bool:
    return boolean(values[0]) is False


def _on(values: Sequence[str]) -> bool:
    return boolean(values[0]) is True


def _truth(values: Sequence[str]) -> bool:
    return boolean(values[0]) is not None


def _never(values: Sequence[str]) -> bool:
    return False


def _is(number: float) -> _Neutral:
    return lambda values: parse_number(values[0]) == number


def _not_above_0(values: Sequence[str]) -> bool:
    found = parse_number(values[0])
    return found is not None and found <= 0


def _word(word: str) -> _Neutral:
    return lambda values: values[0] == word


def _only_factor_0(values: Sequence[str]) -> bool:
    return list(values) == ["0"]


# Section -> whether its values, of which there is one at least, change nothing.
_NEUTRAL: Mapping[str, _Neutral] = {
    **dict.fromkeys(
        (
            "cube-pruning-lazy-scoring", "cube-pruning-deterministic-search", "disable-discarding",
            "phrase-drop-allowed", "monotone-at-punctuation", "early-distortion-cost", "minimum-bayes-risk",
            "lminimum-bayes-risk", "consensus-decoding", "drop-unknown", "always-create-direct-transopt",
            "report-all-factors", "report-all-factors-in-n-best", "print-id", "print-passthrough",
            "print-passthrough-in-n-best", "print-all-derivations", "output-hypo-score", "n-best-trees",
            "include-segmentation-in-n-best", "print-alignment-info-in-n-best", "mira", "mark-unknown",
        ),
        _off,
    ),
    **dict.fromkeys(
        (
            "early-discarding-threshold", "stack-diversity", "translation-option-threshold",
            "cube-pruning-diversity", "start-translation-id", "sort-word-alignment", "inputtype",
        ),
        _is(0),
    ),
    **dict.fromkeys(
        (
            "config", "input-file", "version", "show-weights", "weight-file", "feature-overwrite", "feature-add",
            "feature-name-overwrite", "weight-add", "weight-overwrite", "placeholder-factor",
            "alternate-weight-setting", "translation-details", "tree-translation-details",
            "translation-all-details", "output-word-graph", "alignment-output-file", "report-segmentation",
            "report-segmentation-enriched", "output-search-graph", "output-search-graph-extended",
            "output-search-graph-slf", "output-search-graph-pb", "output-search-graph-hypergraph",
            "output-unknowns", "n-best-list", "lattice-samples", "server", "daemon", "context-string",
            "context-weights", "context-window", "spe-src", "spe-trg", "spe-aln", "text-type", "input-scores",
            "dlm-model", "lmodel-dub",
        ),
        _never,
    ),
    **dict.fromkeys(
        (
            "no-cache", "lattice-hypo-set", "default-non-term-for-empty-range-only", "unpruned-search-graph",
            "include-lhs-in-search-graph", "recover-input-path", "minphr-memory", "minlexr-memory",
        ),
        _truth,
    ),
    "time-out": _not_above_0, "segment-time-out": _not_above_0, "max-partial-trans-opt": _is(10000),
    "labeled-n-best-list": _on, "n-best-factor": _is(20), "xml-input": _word("pass-through"),
    "input-factors": _only_factor_0, "output-factors": _only_factor_0, "factor-delimiter": _word("|"),
}  # fmt: skip

# How else to get what a section asks for.
_INSTEAD = {
    "n-best-list": "`decode --n-best-list` writes one",
    "include-segmentation-in-n-best": "`decode --segmentation` writes it",
    "print-alignment-info-in-n-best": "`decode --segmentation` writes it",
    "input-file": "name the text on the command line",
    "weight-overwrite": "only `decode` supports it: put these weights into [weight]",
    "weight-add": "put these weights into [weight]",
    "feature-add": "put the features into [feature]",
    "feature-overwrite": "change the line in [feature]",
    "feature-name-overwrite": "change the line in [feature]",
    "mark-unknown": "only `decode` supports it",
    "report-segmentation": "Moses switches it on whatever its value is",
    "report-segmentation-enriched": "Moses switches it on whatever its value is",
}


def known_sections() -> list[str]:
    """All sections that Moses 4 has, of both versions."""
    return sorted({*_IRRELEVANT, *SUPPORTED, *_NEUTRAL, *VERSION_1})


def check_sections(ini: MosesIni, printed: bool = False) -> None:
    """Refuse an ini with a section that changes translations and that the decoder does not support.

    Args:
        ini: the ini.
        printed: whether the sections of `PRINTED` are supported.

    Raises:
        DataError: names the section, and what Moses does with it.
    """
    for section, values in ini.sections.items():
        if not values or section in _IRRELEVANT or (section in SUPPORTED and (printed or section not in PRINTED)):
            continue
        if section in _NEUTRAL:
            if _NEUTRAL[section](values):
                continue
            instead = f"; {_INSTEAD[section]}" if section in _INSTEAD else ""
            message = f"[{section}] {', '.join(values)}: this command does not support it{instead}"
        elif section in VERSION_1 and ini.version == 1:
            continue
        else:
            message = _unknown(section)
        raise ini.error(message, ini.section_lines[section][0])
    if ini.version == 1 and ini.sections.get("ttable-file") and not ini.sections.get("ttable-limit"):
        message = "[ttable-file] without [ttable-limit], with which Moses reads no phrase table; 20 is its usual value"
        raise ini.error(message, ini.section_lines["ttable-file"][0])


def overwritten(ini: MosesIni) -> MosesIni:
    """The ini with the weights of `[weight-overwrite]` in the place of those of `[weight]`; `x` keeps a weight."""
    values = ini.values("weight-overwrite")
    if not values:
        return ini
    if len(values) > 1:
        raise ini.error("[weight-overwrite]: expected one line; Moses stops at a second one", values[1][1])
    text, line = values[0]
    weights, weight_lines, name = dict(ini.weights), dict(ini.weight_lines), ""
    for word in WORD.findall(text):
        if word.endswith("="):
            name = word[:-1]
            weights[name], weight_lines[name] = [], line
            continue
        old, place = ini.weights.get(name, []), len(weights.get(name, []))
        number = parse_number(word)
        if word == "x" and place < len(old):
            number = old[place]
        if not name or number is None:
            raise ini.error(f"[weight-overwrite]: expected `NAME= NUMBER ...`, found {word!r}", line)
        weights[name].append(number)
    return replace(ini, weights=weights, weight_lines=weight_lines)


def _unknown(section: str) -> str:
    if not section:
        return "a value before the first section; Moses stops at it"
    if section in _SHORT:
        return f"[{section}]: Moses passes over this short name in an ini; the section is [{_SHORT[section]}]"
    if section in VERSION_1:
        return f"[{section}] is of version 1; Moses does not take it together with [feature]"
    close = closest(section, known_sections())
    return f"there is no section [{section}]; Moses stops at it{f': is it [{close}]?' if close else ''}"


def closest(word: str, words: Collection[str]) -> str:
    """The word most like a misspelt one; nothing if none is like it."""
    return next(iter(difflib.get_close_matches(word, words, 1, 0.75)), "")
