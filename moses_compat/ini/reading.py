"""Parsing of a moses.ini of either version, and refusal of sections that the decoder does not support.

Facts from moses/Parameter.cpp, moses/parameters/*.cpp, FF/FeatureFunction.cpp and StaticData.cpp: `#` begins a comment
anywhere; a section holds one value per line; a feature line is a class name and `key=value` words; a weight line is a
feature's name with `=` at its end, and numbers.  Only spaces and tabs separate words.  Moses ignores a section without
values, uses the first value where one is expected, and stops at an unknown section.

Version 1 is converted to the features and weights of version 2, as Moses does when it starts (`ConvertWeightArgs` of
moses/Parameter.cpp and the functions that it calls).  Version 1 has one weight per line; `[weight-t]` holds those of
all phrase tables in order, `[weight-d]` the distortion weight first and then those of the reordering tables.

A decoder must not ignore a section that changes the output of Moses.  So each section of an ini belongs to one of four
classes: it does not concern phrase-based translation (`_IRRELEVANT`), its value has no effect (`_NEUTRAL`), the decoder
supports it, or the ini is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from moses_compat.files.streams import Input
from moses_compat.ini.moses_ini import ENCODING, WORD, FeatureLine, MosesIni, bare, boolean, parse_number

# 0-based positions of the number of scores and of the path in a line.
WORD_POSITIONS: Mapping[str, Mapping[str, int]] = {
    "ttable-file": {"num-features": 3, "path": 4},
    "distortion-file": {"path": 3},
    "lmodel-file": {"path": 3},
}
# The class of a table by the first number of its line; other numbers are 8 and 14 (suffix arrays), 15, 16 (caches).
_TABLES = {
    0: "PhraseDictionaryMemory", 1: "PhraseDictionaryBinary", 2: "PhraseDictionaryOnDisk",
    6: "PhraseDictionaryMemory", 8: "PhraseDictionarySuffixArray", 12: "PhraseDictionaryCompact",
    14: "PhraseDictionaryDynSuffixArray", 15: "PhraseDictionaryDynamicCacheBased", 16: "PhraseDictionaryCache",
}  # fmt: skip
_LANGUAGE_MODELS = {0: "SRILM", 1: "IRSTLM", 8: "KENLM", 9: "KENLM"}
# Sections that make an ini one of version 1: Parameter.cpp refuses them together with [feature] and [weight].
_KNOWN = ("ttable-file", "weight-t", "distortion-file", "weight-d", "lmodel-file", "weight-l", "weight-w", "weight-p")
_OTHER = (
    "generation-file", "weight-generation", "weight-i", "weight-e", "weight-lex", "weight-glm", "weight-wt",
    "weight-pp", "weight-pb", "weight-lr", "weight-lrl", "weight-bl", "weight-dlm", "weight-slm", "dlm-mode",
    "global-lexical-file", "glm-feature", "slmodel-file", "slmodel-factor", "slmodel-beam", "phrase-pair-feature",
    "phrase-boundary-source-feature", "phrase-boundary-target-feature", "phrase-length-feature",
    "target-word-insertion-feature", "source-word-deletion-feature", "word-translation-feature",
)  # fmt: skip
VERSION_1 = (*_KNOWN, "weight-u", "ttable-limit", *_OTHER)

# Threads, logging and servers; caches and binary tables; settings of searches, input types and decision rules that
# have no effect without another section; sections that no part of Moses reads.
_IRRELEVANT = (
    "threads", "verbose", "description", "server-port", "server-log", "serial", "server-maxconn",
    "server-maxconn-backlog", "server-keepalive-maxconn", "server-keepalive-timeout", "server-timeout",
    "session-timeout", "session-cache-size", "clean-lm-cache",
    "mbr-size", "mbr-scale", "lmbr-p", "lmbr-r", "lmbr-thetas", "lmbr-map-weight", "lmbr-pruning-factor",
    "max-chart-span", "non-terminals", "rule-limit", "source-label-overlap", "unknown-lhs",
    "s2t-parsing-algorithm", "xml-brackets",
    "link-param-count", "references", "distortion", "lmodel-oov-feature",
)  # fmt: skip

# Sections that only a command which prints translations supports; other commands refuse values that are not neutral.
PRINTED = ("mark-unknown", "weight-overwrite")
SUPPORTED = (
    "feature", "weight", "mapping", "decoding-graph-backoff", "search-algorithm", "stack", "cube-pruning-pop-limit",
    "beam-threshold", "distortion-limit", "max-phrase-length", "max-trans-opt-per-coverage", "unknown-word-prefix",
    "unknown-word-suffix", "print-alignment-info", *PRINTED,
)  # fmt: skip

# One-letter and other short names of Moses' command line options; Moses ignores them in an ini.
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


def _version_1_sections(ini: MosesIni) -> list[str]:
    """Return the sections of an ini that only version 1 has."""
    return [name for name, values in ini.sections.items() if values and name in (*_KNOWN, "weight-u", *_OTHER)]


def _convert_version_1(ini: MosesIni) -> None:
    """Fill in the features and weights that the sections of version 1 define.

    A section without a counterpart, such as `[generation-file]`, becomes a feature whose class is the section's name,
    so that the decoder refuses it.

    Raises:
        DataError: a line is invalid in its section, a section has too few weights, or `[weight-t]` too many.
    """
    # Features in the order of Moses, which is that of its n-best lists.
    _single(ini, "weight-p", "PhrasePenalty")
    _single(ini, "weight-w", "WordPenalty")
    _language_models(ini)
    _single(ini, "weight-u", "UnknownWordPenalty")
    _reordering(ini)
    _tables(ini)
    for section in _version_1_sections(ini):
        if section in _OTHER:
            line = (ini.section_lines[section] or [1])[0]
            _add(ini, f"[{section}]", f"[{section}]", {}, line, section)
    kinds = {feature.kind for feature in ini.features}
    for kind in {"WordPenalty", "UnknownWordPenalty"} - kinds:
        # Moses always adds these two.
        _add(ini, kind, f"{kind}0", {}, len(ini.lines), "")


def _add(ini: MosesIni, kind: str, name: str, arguments: Mapping[str, str], line: int, section: str) -> None:
    ini.features.append(FeatureLine(kind, name, arguments, line, section))


def _numbers(ini: MosesIni, section: str) -> list[tuple[float, int]]:
    numbers = []
    for value, line in ini.values(section):
        if (number := parse_number(value)) is None:
            raise ini.error(f"[{section}]: expected one finite number a line, found {value!r}", line)
        numbers.append((number, line))
    return numbers


def _words(ini: MosesIni, section: str, value: str, line: int, least: int, form: str) -> list[str]:
    words: list[str] = WORD.findall(value)
    if len(words) < least:
        raise ini.error(f"[{section}]: expected `{form}`, found {value!r}", line)
    return words


def _whole(ini: MosesIni, section: str, text: str, line: int) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ini.error(f"[{section}]: expected a whole number, found {text!r}", line)
    return int(text)


def _weigh(ini: MosesIni, name: str, numbers: list[tuple[float, int]]) -> None:
    """Set the weights of a feature."""
    ini.weights[name] = [number for number, _ in numbers]
    ini.number_lines[name] = [line for _, line in numbers]
    if numbers:
        ini.weight_lines[name] = numbers[0][1]


def _single(ini: MosesIni, section: str, kind: str) -> None:
    numbers = _numbers(ini, section)
    if len(numbers) > 1:
        raise ini.error(f"[{section}]: expected one weight, found {len(numbers)}", numbers[1][1])
    if numbers:
        _add(ini, kind, f"{kind}0", {}, numbers[0][1], section)
        _weigh(ini, f"{kind}0", numbers)


def _language_models(ini: MosesIni) -> None:
    numbers = _numbers(ini, "weight-l")
    unknown = [_whole(ini, "lmodel-oov-feature", *value) for value in ini.values("lmodel-oov-feature")]
    for index, (value, line) in enumerate(ini.values("lmodel-file")):
        words = _words(ini, "lmodel-file", value, line, 4, "type factor order path")
        implementation = _whole(ini, "lmodel-file", words[0], line)
        kind = _LANGUAGE_MODELS.get(implementation, f"[lmodel-file] {implementation}")
        size = 1 + (unknown[index] if index < len(unknown) else 0)
        if len(numbers) < size:
            raise ini.error("[weight-l] has no weight for this model", line)
        arguments = {"factor": words[1], "order": words[2], "num-features": str(size), "path": words[3]}
        if index < len(unknown):
            # Moses adds the feature regardless of the number.
            arguments["oov-feature"] = "1"
        _add(ini, kind, f"{kind}{index}", arguments, line, "lmodel-file")
        _weigh(ini, f"{kind}{index}", numbers[:size])
        del numbers[:size]


def _reordering(ini: MosesIni) -> None:
    numbers = _numbers(ini, "weight-d")
    if numbers:
        _add(ini, "Distortion", "Distortion0", {}, numbers[0][1], "weight-d")
        _weigh(ini, "Distortion0", numbers[:1])
        del numbers[:1]
    for index, (value, line) in enumerate(ini.values("distortion-file")):
        words = _words(ini, "distortion-file", value, line, 4, "factors type scores path")
        size = _whole(ini, "distortion-file", words[2], line)
        if len(numbers) < size:
            raise ini.error(f"the model has {size} scores, but [weight-d] only {len(numbers)} numbers for them", line)
        source, _, target = words[0].partition("-")
        arguments = {
            "type": words[1], "input-factor": source, "output-factor": target, "num-features": words[2],
            "path": words[3],
        }  # fmt: skip
        name = f"LexicalReordering{index}"
        _add(ini, "LexicalReordering", name, arguments, line, "distortion-file")
        _weigh(ini, name, numbers[:size])
        del numbers[:size]


def _tables(ini: MosesIni) -> None:
    numbers = _numbers(ini, "weight-t")
    tables = [
        (_words(ini, "ttable-file", value, line, 5, "type input-factors output-factors scores path"), line)
        for value, line in ini.values("ttable-file")
    ]
    limits = [value for value, _ in ini.values("ttable-limit")]
    if len(limits) == 1:
        limits *= len(tables)
    if limits and len(limits) < len(tables):
        raise ini.error(f"there are {len(tables)} tables but {len(limits)} numbers in [ttable-limit]", tables[-1][1])
    sizes = [_whole(ini, "ttable-file", words[3], line) for words, line in tables]
    counts: dict[str, int] = {}
    used = 0
    for index, ((words, line), size) in enumerate(zip(tables, sizes, strict=True)):
        last = index == len(tables) - 1
        if used + size > len(numbers) or (last and used + size < len(numbers)):
            raise ini.error(f"the tables have {sum(sizes)} scores, but [weight-t] {len(numbers)} numbers", line)
        kind = _TABLES.get(_whole(ini, "ttable-file", words[0], line), f"[ttable-file] {words[0]}")
        arguments = {"input-factor": words[1], "output-factor": words[2], "num-features": words[3], "path": words[4]}
        if limits:
            arguments["table-limit"] = limits[index]
        name = f"{kind}{counts.get(kind, 0)}"
        counts[kind] = counts.get(kind, 0) + 1
        _add(ini, kind, name, arguments, line, "ttable-file")
        _weigh(ini, name, numbers[used : used + size])
        used += size


def read_moses_ini(path: str) -> MosesIni:
    """Read a moses.ini of version 1 or 2.

    Raises:
        DataError: the file cannot be read, mixes both versions, or a line is invalid in its section.
    """
    with Input(path) as source:
        data = source.read_all()
    return parse_moses_ini(path, data.decode(*ENCODING))


def parse_moses_ini(path: str, text: str) -> MosesIni:
    """Parse the text of a moses.ini of version 1 or 2; `path` is its name in messages.

    Raises:
        DataError: as `read_moses_ini`.
    """
    # Not `splitlines`, which splits at more line ends than Moses; a CR remains part of its line.
    ini = MosesIni(path, text.split("\n"))
    section = ""
    for number, line in enumerate(ini.lines, 1):
        value = bare(line)
        if not value:
            continue
        if value[0] == "[":
            # Moses ignores text after the bracket, and the whole line if the bracket is missing.
            if "]" in value:
                section = value[1 : value.index("]")]
                ini.sections.setdefault(section, [])
                ini.section_lines.setdefault(section, [])
            continue
        ini.sections.setdefault(section, []).append(value)
        ini.section_lines.setdefault(section, []).append(number)
    _interpret(ini)
    for feature in ini.features:
        if any("\0" in argument for argument in feature.arguments.values()):
            raise ini.error(f"{feature.name}: a zero byte, which is invalid in file names and numbers", feature.line)
    return ini


def _interpret(ini: MosesIni) -> None:
    old = _version_1_sections(ini)
    if old and not ini.sections.keys() & {"feature", "weight"}:
        ini.version = 1
        _convert_version_1(ini)
        return
    unnamed: dict[str, int] = {}
    for value, number in ini.values("feature"):
        ini.features.append(_feature(ini, value, number, unnamed))
    for value, number in ini.values("weight"):
        _weight(ini, value, number)
    if not ini.features:
        raise ini.error("there is no [feature] section; expected a moses.ini")
    if old:
        raise ini.error(f"[{old[0]}] is of version 1, [feature] of version 2; Moses refuses to mix them")


def _feature(ini: MosesIni, value: str, number: int, unnamed: dict[str, int]) -> FeatureLine:
    kind, *words = WORD.findall(value)
    arguments: dict[str, str] = {}
    for word in words:
        key, equals, argument = word.partition("=")
        if not equals:
            raise ini.error(f"{kind}: expected key=value, found {word!r}", number)
        if key in arguments:
            raise ini.error(f"{kind}: the key {key} is given twice", number)
        arguments[key] = argument
    name = arguments.pop("name", "")
    if not name:
        # Moses numbers only the features without a name.
        name = f"{kind}{unnamed.get(kind, 0)}"
        unnamed[kind] = unnamed.get(kind, 0) + 1
    if any(feature.name == name for feature in ini.features):
        raise ini.error(f"a second feature with the name {name}", number)
    return FeatureLine(kind, name, arguments, number)


def _weight(ini: MosesIni, value: str, number: int) -> None:
    name, *words = WORD.findall(value)
    if not name.endswith("="):
        raise ini.error(f"expected a feature name with = at its end and numbers, found {value!r}", number)
    name = name[:-1]
    if name in ini.weights:
        raise ini.error(f"the weights of {name} are given twice", number)
    values = [parse_number(word) for word in words]
    if None in values:
        raise ini.error(f"{name}= a weight is not a finite number", number)
    ini.weights[name] = [value for value in values if value is not None]
    ini.weight_lines[name] = number


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
    number = parse_number(values[0])
    return number is not None and number <= 0


def _word(word: str) -> _Neutral:
    return lambda values: values[0] == word


def _only_factor_0(values: Sequence[str]) -> bool:
    return list(values) == ["0"]


# Section -> test whether its values (at least one) have no effect.
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

# Alternatives to unsupported sections.
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
    """Return all sections that Moses 4 has, of both versions."""
    return sorted({*_IRRELEVANT, *SUPPORTED, *_NEUTRAL, *VERSION_1})


def check_sections(ini: MosesIni, printed: bool = False) -> None:
    """Refuse an ini with a section that changes translations and that the decoder does not support.

    Args:
        ini: the ini.
        printed: whether the sections of `PRINTED` are supported.

    Raises:
        DataError: the ini has such a section; the message names it and describes how Moses handles it.
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
    """Return the ini with the weights of `[weight-overwrite]` in place of those of `[weight]`; `x` keeps a weight."""
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
        old, index = ini.weights.get(name, []), len(weights.get(name, []))
        number = parse_number(word)
        if word == "x" and index < len(old):
            number = old[index]
        if not name or number is None:
            raise ini.error(f"[weight-overwrite]: expected `NAME= NUMBER ...`, found {word!r}", line)
        weights[name].append(number)
    return replace(ini, weights=weights, weight_lines=weight_lines)


def _unknown(section: str) -> str:
    if not section:
        return "a value before the first section; Moses stops at it"
    if section in _SHORT:
        return f"[{section}]: Moses ignores this short name in an ini; the section is [{_SHORT[section]}]"
    if section in VERSION_1:
        return f"[{section}] is of version 1; Moses does not accept it together with [feature]"
    close = closest(section, known_sections())
    return f"there is no section [{section}]; Moses stops at it{f': is it [{close}]?' if close else ''}"


def closest(word: str, words: Collection[str]) -> str:
    """Return the word closest to a misspelt one; empty if none is close."""
    return next(iter(difflib.get_close_matches(word, words, 1, 0.75)), "")
