"""Features and sections of a moses.ini as settings of the decoder, and checks for unsupported ones."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from moses_compat.ini.moses_ini import WORD, FeatureLine, MosesIni, bare, boolean, parse_number
from moses_compat.ini.reading import closest
from moses_compat.ini.tables import BINARY
from phrasetool.errors import DataError
from phrasetool.smt.decoder.features import DIGITS, FeatureSet, ReorderingModel, Vector, numbered
from phrasetool.smt.decoder.table import TranslationTable
from phrasetool.smt.decoder.translation_options import TableLimit
from phrasetool.smt.decoder.translator import SearchOptions

_SINGLE = ("Distortion", "WordPenalty", "PhrasePenalty", "UnknownWordPenalty")
_LANGUAGE_MODELS = ("KENLM", "SRILM", "IRSTLM")
# Feature classes of which an ini may have several.
_SEVERAL = {"PhraseDictionaryMemory": "TranslationModel", **dict.fromkeys(_LANGUAGE_MODELS, "LM")}
_KNOWN = (*_SINGLE, "PhraseDictionaryMemory", "LexicalReordering", *_LANGUAGE_MODELS)
# Moses' defaults of [max-phrase-length] and [max-trans-opt-per-coverage] (moses/TypeDef.h), and this decoder's maximum.
MAX_PHRASE_LENGTH, MAX_OPTIONS, _LONGEST = 20, 5000, 255
# Counts such as the number of features; `isdigit` accepts digits that `int` does not.
_COUNT = re.compile(r"[0-9]{1,18}")
# Arguments of all features but lexical reordering, see moses/FF/FeatureFunction.cpp; then those of each class.
_GENERAL = ("num-features", "tuneable", "tuneable-components", "verbosity", "filterable")
_ARGUMENTS = {
    "PhraseDictionaryMemory": (*_GENERAL, "path", "table-limit", "cache-size", "input-factor", "output-factor"),
    "LexicalReordering": ("num-features", "type", "path", "input-factor", "output-factor", "default-scores"),
    "KENLM": (*_GENERAL, "path", "order", "factor", "load", "lazyken"),
    "SRILM": (*_GENERAL, "path", "order", "factor"),
    "IRSTLM": (*_GENERAL, "path", "order", "factor"),
    **dict.fromkeys(_SINGLE, _GENERAL),
}
# Arguments of Moses that have no effect if they are false.
_OFF = {
    "PhrasePenalty": ("per-phrase-table",),
    "Distortion": ("sparse", "sparse-distance"),
    **dict.fromkeys(_LANGUAGE_MODELS, ("oov-feature",)),
}
_LOADING = {
    "load": ("lazy", "populate_or_lazy", "populate_or_read", "populate", "read", "parallel_read"),
    "lazyken": ("0", "1", "false", "true"),
}


def lines_by_feature(ini: MosesIni) -> dict[str, FeatureLine]:
    """Return the ini's feature lines by the decoder's names of the features, see `FeatureSet.sizes`.

    Raises:
        DataError: a feature is unsupported, missing, or repeated without support for several.  The other functions of
            this module raise it, too, for invalid or unsupported lines.
    """
    lines: dict[str, FeatureLine] = {}
    for line in ini.features:
        if line.kind in BINARY:
            path = line.arguments.get("path", "")
            raise ini.error(
                f"{line.name} is a {BINARY[line.kind]} table ({path}), which only Moses reads; "
                "name the text table it was made from as PhraseDictionaryMemory",
                line.line,
            )
        if line.kind not in _KNOWN:
            known = ", ".join(_KNOWN)
            raise ini.error(f"the decoder does not know the feature {line.kind}; it knows {known}", line.line)
        feature = line.kind
        if line.kind in _SEVERAL:
            several = _SEVERAL[line.kind]
            feature = numbered(several, len(lines_of(lines, several)))
        if feature in lines:
            message = f"{line.name}: {lines[feature].name} precedes; only one such feature is supported"
            raise ini.error(message, line.line)
        _check_arguments(ini, line)
        lines[feature] = line
    for feature, kind in (("TranslationModel", "PhraseDictionaryMemory"), ("LM", "KENLM")):
        if feature not in lines:
            raise ini.error(f"[feature] has no {kind}")
    return lines


def _check_arguments(ini: MosesIni, line: FeatureLine) -> None:
    """Raise DataError for arguments that Moses rejects or this decoder does not support."""
    known = (*_ARGUMENTS[line.kind], *_OFF.get(line.kind, ()))
    for key, value in line.arguments.items():
        setting = f"{line.name}: {key}={value}"
        if key in ("factor", "input-factor", "output-factor") and key in known and value != "0":
            raise ini.error(f"{setting}: factors are not supported", line.line)
        if key in _LOADING and key in known and value not in _LOADING[key]:
            raise ini.error(f"{setting}: expected one of {', '.join(_LOADING[key])}", line.line)
        general = key == "require-sorting-after-source-context" and line.kind != "LexicalReordering"
        if general or key in _OFF.get(line.kind, ()):
            if flag(ini, line, key, False):
                raise ini.error(f"{setting} is not supported", line.line)
        elif key.startswith("sparse") and line.kind in ("Distortion", "LexicalReordering"):
            raise ini.error(f"{setting}: sparse features are not supported", line.line)
        elif key not in known:
            close = closest(key, known)
            message = f"{line.kind} has no argument {key}; Moses stops at it{f': is it {close}?' if close else ''}"
            raise ini.error(f"{line.name}: {message}", line.line)
    if line.kind in ("PhraseDictionaryMemory", "LexicalReordering"):
        # A reordering table conditioned on the source alone has no target phrases.
        source_only = "f" in line.arguments.get("type", "").split("-")
        for key in ("input-factor",) if source_only else ("input-factor", "output-factor"):
            if key not in line.arguments:
                raise ini.error(f"{line.name}: expected {key}=0, without which Moses reads no words", line.line)
    if line.kind == "KENLM" and line.section == "feature" and "\t" in bare(ini.lines[line.line - 1]):
        raise ini.error(f"{line.name}: a tab; Moses expects spaces between the words of a KENLM line", line.line)
    if "tuneable-components" in line.arguments and not flag(ini, line, "tuneable", line.kind != "UnknownWordPenalty"):
        raise ini.error(f"{line.name}: tuneable-components although it is not tuneable; Moses stops at that", line.line)
    if line.kind == "UnknownWordPenalty" and flag(ini, line, "tuneable", False):
        raise ini.error(f"{line.name}: tuneable={line.arguments['tuneable']} is not supported", line.line)
    if line.kind in (*_SINGLE, *_LANGUAGE_MODELS) and (size := number_of(ini, line, "num-features", 1)) != 1:
        raise ini.error(f"{line.name}: num-features={size}: a {line.kind} has one score", line.line)


def flag(ini: MosesIni, line: FeatureLine, key: str, default: bool) -> bool:
    """Return the truth value of an argument of a feature, or the default if it is missing."""
    if key not in line.arguments:
        return default
    if (truth := boolean(line.arguments[key])) is None:
        raise ini.error(f"{line.name}: expected {key}=true or {key}=false, found {line.arguments[key]!r}", line.line)
    return truth


def lines_of(lines: Mapping[str, FeatureLine], feature: str) -> list[FeatureLine]:
    """Return the lines of all features of a kind, in the ini's order."""
    return [line for name, line in lines.items() if name.rstrip(DIGITS) == feature]


def used_tables(ini: MosesIni, tables: int) -> tuple[int, ...]:
    """Return the indexes of the phrase tables that an ini uses, in the order of its decoding paths.

    Without `[mapping]`, Moses uses only the first table (StaticData::LoadDecodeGraphs).

    Raises:
        DataError: a line of `[mapping]` is not `PATH T TABLE`, names a missing table, or adds a step to a path; or
            `[decoding-graph-backoff]` makes a path a fallback of others.
    """
    indexes: list[int] = []
    for value, number in ini.values("mapping") or [("0 T 0", 1)]:
        words = WORD.findall(value)
        path, step, index = ["0", *words][-3:] if len(words) in (2, 3) else ("", "", "")
        if step != "T" or not (_COUNT.fullmatch(path) and _COUNT.fullmatch(index)):
            message = f"expected `PATH T TABLE`, found {value!r}; other steps are not supported"
            raise ini.error(f"[mapping]: {message}", number)
        if int(index) >= tables:
            raise ini.error(f"[mapping]: the ini has no phrase table {index}, it has {tables}", number)
        if int(path) != len(indexes) or int(index) in indexes:
            message = "each path and each table once, in order; paths of several steps are not supported"
            raise ini.error(f"[mapping]: {value!r}: expected {message}", number)
        indexes.append(int(index))
    # The meaning of other numbers differs between versions of Moses.
    for value, number in ini.values("decoding-graph-backoff")[: len(indexes)]:
        if value != "0":
            raise ini.error(f"[decoding-graph-backoff]: expected 0, found {value!r}: back-off is not supported", number)
    return tuple(indexes)


def number_of(ini: MosesIni, line: FeatureLine, key: str, default: int | None = None) -> int:
    """Return the value of a numeric argument of a feature, or the default if it is missing."""
    value = line.arguments.get(key)
    if value is None and default is not None:
        return default
    if value is None or not _COUNT.fullmatch(value):
        raise ini.error(f"{line.name}: expected {key}=NUMBER, found {value!r}", line.line)
    return int(value)


def path_of(ini: MosesIni, line: FeatureLine, *suffixes: str) -> str:
    """Return the path of a feature's file, with a suffix if only that exists: Moses adds .gz to reordering tables."""
    named = line.arguments.get("path")
    if not named:
        raise ini.error(f"{line.name}: expected path=FILE", line.line)
    path = ini.resolve(named)
    for suffix in suffixes:
        if not os.path.exists(path) and os.path.exists(ini.resolve(named + suffix)):
            return ini.resolve(named + suffix)
    if not os.path.exists(path) and os.path.exists(f"{path}.gz"):
        # EMS adds the ending when it filters a model for a text before decoding; Moses itself does not.
        raise ini.error(
            f"{line.name}: {path} does not exist, but {path}.gz does; Moses reads a table by its whole name: "
            f"write path={named}.gz",
            line.line,
        )
    return path


def reordering_model(ini: MosesIni, line: FeatureLine) -> ReorderingModel:
    """Return the type of the reordering model of a feature line."""
    if "default-scores" in line.arguments:
        raise ini.error(f"{line.name}: default-scores are not supported", line.line)
    try:
        model = ReorderingModel.parse(line.arguments.get("type", ""))
    except ValueError as error:
        raise ini.error(f"{line.name}: {error}", line.line) from error
    expected = number_of(ini, line, "num-features", model.weights)
    if expected != model.weights:
        raise ini.error(f"{line.name}: its type has {model.weights} features, not {expected}", line.line)
    return model


def unknown_weight(ini: MosesIni, line: FeatureLine | None) -> float:
    """Return the weight of the unknown-word penalty; 0 if the ini has no such feature."""
    return _line_weights(ini, line, 1)[0] if line and line.name in ini.weights else float(line is not None)


def _line_weights(ini: MosesIni, line: FeatureLine, size: int) -> list[float]:
    values = ini.weights.get(line.name)
    if values is None:
        message = f"[weight] has no line {line.name}=, and Moses would take 1 for every weight; give it one"
        raise ini.error(message, line.line)
    if len(values) != size:
        raise ini.error(f"{line.name} has {size} features but {len(values)} weights", ini.weight_lines[line.name])
    return values


def weights_of(ini: MosesIni, features: FeatureSet, lines: Mapping[str, FeatureLine]) -> Vector:
    """Return all weights, float64, shape (F,); 0 for features that the ini does not have."""
    # An ini may claim any number of features, so their lines are checked before an array is allocated.
    values_by_feature = {
        feature: _line_weights(ini, lines[feature], part.stop - part.start)
        for feature, part in features.slices.items()
        if feature in lines
    }
    weights = np.zeros(len(features))
    for feature, values in values_by_feature.items():
        weights[features.slices[feature]] = values
    return weights


def search_options(ini: MosesIni, tables: Sequence[FeatureLine]) -> SearchOptions:
    """Return the limits of the search."""
    algorithm = ini.number("search-algorithm", 0)
    if algorithm not in (0, 1):
        raise ini.error(f"[search-algorithm] {algorithm} is not supported; expected 0 (stacks) or 1 (cube pruning)")
    limits = tuple(number_of(ini, table, "table-limit", 20) for table in tables)
    distortion_limit = ini.number("distortion-limit", -1)
    if algorithm and distortion_limit < -1:
        message = f"{distortion_limit}: Moses finds no translation by cube pruning with it; no limit is -1"
        raise _value_error(ini, "distortion-limit", message)
    return SearchOptions(
        algorithm="cube" if algorithm else "stack",
        stack_size=_positive(ini, "stack", 200, "keeps all hypotheses, which is not supported; give a large number"),
        pop_limit=_positive(
            ini, "cube-pruning-pop-limit", 1000,
            "makes no hypotheses with 0 and unlimited ones with less; give a large number",
        ),
        beam_threshold=_beam_threshold(ini),
        distortion_limit=distortion_limit,
        table_limit=limited_options(ini, limits),
    )  # fmt: skip


def _value_error(ini: MosesIni, section: str, message: str) -> DataError:
    return ini.error(f"[{section}] {message}", ini.section_lines[section][0])


def _positive(ini: MosesIni, section: str, default: int, otherwise: str) -> int:
    """Return the number of a section, 1 or more; `otherwise` describes what Moses does with smaller numbers."""
    number = ini.number(section, default)
    if number < 1:
        raise _value_error(ini, section, f"{number}: expected 1 or more; Moses {otherwise}")
    return number


def _beam_threshold(ini: MosesIni) -> float:
    values = ini.sections.get("beam-threshold") or ["1e-5"]
    threshold = parse_number(values[0])
    if threshold is None or not 0 <= threshold < 1:
        message = f"{values[0]}: expected 0 or more and less than 1; with others Moses empties full stacks"
        raise _value_error(ini, "beam-threshold", message)
    return threshold


def limited_options(ini: MosesIni, limits: tuple[int, ...]) -> TableLimit:
    """Return the limit of options per source phrase for each table, at most the common `[max-trans-opt-per-coverage]`.

    Args:
        ini: the ini.
        limits: the limit of each table; 0 for no limit.
    """
    most = ini.number("max-trans-opt-per-coverage", MAX_OPTIONS)
    if most > 0 and len(limits) == 1:
        # Both limits keep the options with the best scores in isolation.
        limits = (min(limits[0] or most, most),)
    elif 0 < most < MAX_OPTIONS and (0 in limits or sum(limits) > most):
        where = ini.section_lines["max-trans-opt-per-coverage"][0]
        raise ini.error(f"[max-trans-opt-per-coverage] {most} is not supported with several phrase tables", where)
    return limits[0] if len(set(limits)) == 1 else limits


def check_option_count(ini: MosesIni, table: TranslationTable, limit: TableLimit) -> None:
    """Check that no source phrase has more options, from several tables without limits, than Moses uses in total.

    Raises:
        DataError: Moses would use only the best options of a source phrase.
    """
    most = ini.number("max-trans-opt-per-coverage", MAX_OPTIONS)
    count = int(table.tables.max(initial=0)) + 1
    limits = np.array([size or len(table) for size in ((limit,) * count if isinstance(limit, int) else limit)])
    if count == 1 or most <= 0 or limits.sum() <= most:
        return
    sources = table.entry_sources.astype(np.int64)
    by_table = np.bincount(sources * count + table.tables, minlength=count * (len(table.first) - 1))
    options = np.minimum(by_table.reshape(-1, count), limits[:count]).sum(axis=1)
    if options.max(initial=0) > most:
        source = int(options.argmax())
        words = table.index.words[table.index.offsets[source] : table.index.offsets[source + 1]]
        raise ini.error(
            f"{options[source]:,} options for {table.source_symbols.join(words).decode('utf-8', 'replace')!r} from "
            f"several phrase tables; Moses takes the best {most:,} of them ([max-trans-opt-per-coverage]), which is "
            "not supported: give the tables a table-limit",
            next(line.line for line in ini.features if line.kind == "PhraseDictionaryMemory"),
        )


def max_phrase_length(ini: MosesIni) -> int:
    """Return the length in words of the longest source phrases that are looked up."""
    length = ini.number("max-phrase-length", MAX_PHRASE_LENGTH)
    if not 1 <= length <= _LONGEST:
        where = ini.section_lines["max-phrase-length"][0]
        raise ini.error(f"[max-phrase-length]: expected 1 to {_LONGEST}, found {length}", where)
    return length


def tuneable_weights(ini: MosesIni, features: FeatureSet, lines: Mapping[str, FeatureLine]) -> npt.NDArray[np.bool_]:
    """Return which weights tuning may change, bool, shape (F,)."""
    tuneable = np.zeros(len(features), np.bool_)
    for feature, part in features.slices.items():
        if feature not in lines:
            continue
        line = lines[feature]
        size = part.stop - part.start
        components = line.arguments.get("tuneable-components")
        flags = [boolean(word) for word in components.split(",")] if components else [True] * size
        if len(flags) != size:
            raise ini.error(f"{line.name}: {size} features but {len(flags)} tuneable-components", line.line)
        if None in flags:
            raise ini.error(f"{line.name}: tuneable-components={components}: expected true or false", line.line)
        tuneable[part] = [flag(ini, line, "tuneable", True) and bool(component) for component in flags]
    return tuneable
