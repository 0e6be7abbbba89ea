"""What the features and sections of a moses.ini are to the decoder, and what it does not take."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from moses_compat.ini.lines import WORD, FeatureLine
from moses_compat.ini.moses_ini import MosesIni
from moses_compat.ini.tables import BINARY
from phrasetool.smt.decoder.features import DIGITS, FeatureSet, Vector, numbered
from phrasetool.smt.decoder.orientation import ReorderingModel
from phrasetool.smt.decoder.translator import SearchOptions

_SINGLE = ("Distortion", "WordPenalty", "PhrasePenalty")
_LANGUAGE_MODELS = ("KENLM", "SRILM", "IRSTLM", "LM")
# Of these an ini may have several.
_SEVERAL = {"PhraseDictionaryMemory": "TranslationModel", **dict.fromkeys(_LANGUAGE_MODELS, "LM")}
# Sections that change what is translated, and values that leave them off.
_UNSUPPORTED = ("weight-file", "xml-input", "drop-unknown", "input-type", "lmodel-oov-feature", "phrase-drop-allowed")
_HARMLESS = ("0", "false", "pass-through")
_KNOWN = (*_SINGLE, "UnknownWordPenalty", "PhraseDictionaryMemory", "LexicalReordering", *_LANGUAGE_MODELS)
# Of features and the like; `isdigit` takes digits that `int` does not.
_COUNT = re.compile(r"[0-9]{1,18}")


def lines_by_feature(ini: MosesIni) -> dict[str, FeatureLine]:
    """The ini's feature lines by what they are to the decoder, see `FeatureSet.sizes`.

    Raises:
        DataError: there is one that the decoder does not know, or takes once only, or one is missing; all that follow
            here raise it too, for a line that is not as it must be.
    """
    found: dict[str, FeatureLine] = {}
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
            feature = numbered(several, len(lines_of(found, several)))
        if feature in found:
            raise ini.error(f"{line.name}: {found[feature].name} is there already; this decoder takes one", line.line)
        for key in ("factor", "input-factor", "output-factor"):
            if line.arguments.get(key, "0") != "0":
                raise ini.error(f"{line.name}: {key}={line.arguments[key]}: factors are not supported", line.line)
        found[feature] = line
    for feature, kind in (("TranslationModel", "PhraseDictionaryMemory"), ("LM", "KENLM")):
        if feature not in found:
            raise ini.error(f"there is no {kind} among the features")
    return found


def lines_of(lines: Mapping[str, FeatureLine], feature: str) -> list[FeatureLine]:
    """The lines of all features of a kind, in the ini's order."""
    return [line for name, line in lines.items() if name.rstrip(DIGITS) == feature]


def used_tables(ini: MosesIni, tables: int) -> tuple[int, ...]:
    """The phrase tables that an ini uses, by their places, in the order of its decoding paths.

    Without `[mapping]` Moses uses the first table alone (StaticData::LoadDecodeGraphs).

    Raises:
        DataError: a line of `[mapping]` is not `PATH T TABLE`, asks for a table that is not there or for several steps
            in a row; or a path is there for what other paths leave.
    """
    found: list[int] = []
    for value, number in ini.values("mapping") or [("0 T 0", 1)]:
        words = WORD.findall(value)
        path, step, place = ["0", *words][-3:] if len(words) in (2, 3) else ("", "", "")
        if step != "T" or not (_COUNT.fullmatch(path) and _COUNT.fullmatch(place)):
            message = f"expected `PATH T TABLE`, found {value!r}; other steps are not supported"
            raise ini.error(f"[mapping]: {message}", number)
        if int(place) >= tables:
            raise ini.error(f"[mapping]: there is no phrase table {place}; the ini has {tables}", number)
        if int(path) != len(found) or int(place) in found:
            message = "each path and each table once, in order; several steps of a path are not supported"
            raise ini.error(f"[mapping]: {value!r}: expected {message}", number)
        found.append(int(place))
    # Of the first path the number means nothing; versions of Moses do not agree about those of the others.
    for value, number in ini.values("decoding-graph-backoff")[1 : len(found)]:
        if value != "0":
            raise ini.error(f"[decoding-graph-backoff]: expected 0, found {value!r}: back-off is not supported", number)
    return tuple(found)


def number_of(ini: MosesIni, line: FeatureLine, key: str, default: int | None = None) -> int:
    """The whole number that an argument of a feature is."""
    value = line.arguments.get(key)
    if value is None and default is not None:
        return default
    if value is None or not _COUNT.fullmatch(value):
        raise ini.error(f"{line.name}: expected {key}=NUMBER, found {value!r}", line.line)
    return int(value)


def path_of(ini: MosesIni, line: FeatureLine, *suffixes: str) -> str:
    """The file a feature reads; Moses adds .gz to the name of a reordering table itself."""
    named = line.arguments.get("path")
    if not named:
        raise ini.error(f"{line.name}: expected path=FILE", line.line)
    path = ini.resolve(named)
    for suffix in suffixes:
        if not os.path.exists(path) and os.path.exists(ini.resolve(named + suffix)):
            return ini.resolve(named + suffix)
    return path


def reordering_model(ini: MosesIni, line: FeatureLine) -> ReorderingModel:
    """What kind of model a reordering table is."""
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
    """The weight of the unknown-word penalty; 0 if there is none."""
    return _line_weights(ini, line, 1)[0] if line and line.name in ini.weights else float(line is not None)


def _line_weights(ini: MosesIni, line: FeatureLine, size: int) -> list[float]:
    values = ini.weights.get(line.name)
    if values is None:
        raise ini.error(f"[weight] has no line {line.name}=", line.line)
    if len(values) != size:
        raise ini.error(f"{line.name} has {size} features but {len(values)} weights", ini.weight_lines[line.name])
    return values


def weights_of(ini: MosesIni, features: FeatureSet, lines: Mapping[str, FeatureLine]) -> Vector:
    """All weights, float64, shape (F,); 0 for features that the ini does not have."""
    # An ini may claim any number of features: looked at before there is an array for them.
    found = {
        feature: _line_weights(ini, lines[feature], part.stop - part.start)
        for feature, part in features.slices.items()
        if feature in lines
    }
    weights = np.zeros(len(features))
    for feature, values in found.items():
        weights[features.slices[feature]] = values
    return weights


def search_options(ini: MosesIni, tables: Sequence[FeatureLine]) -> SearchOptions:
    """The limits of the search."""
    for section in _UNSUPPORTED:
        values = ini.sections.get(section)
        if values is not None and (not values or values[0] not in _HARMLESS):
            raise ini.error(f"[{section}] is not supported by this decoder")
    algorithm = ini.number("search-algorithm", 0)
    if algorithm not in (0, 1):
        raise ini.error(f"[search-algorithm] {algorithm} is not supported; expected 0 (stacks) or 1 (cube pruning)")
    limits = tuple(number_of(ini, table, "table-limit", 20) for table in tables)
    beam = ini.sections.get("beam-threshold", ["1e-5"])
    try:
        return SearchOptions(
            algorithm="cube" if algorithm else "stack",
            stack_size=ini.number("stack", 200),
            pop_limit=ini.number("cube-pruning-pop-limit", 1000),
            beam_threshold=float(beam[0]) if beam else 1e-5,
            distortion_limit=ini.number("distortion-limit", -1),
            table_limit=limits[0] if len(set(limits)) == 1 else limits,
        )
    except ValueError as error:
        raise ini.error(f"[stack], [cube-pruning-pop-limit] or [beam-threshold]: {error}") from error


def tuneable_weights(ini: MosesIni, features: FeatureSet, lines: Mapping[str, FeatureLine]) -> npt.NDArray[np.bool_]:
    """bool, shape (F,): what tuning may change."""
    tuneable = np.zeros(len(features), np.bool_)
    for feature, part in features.slices.items():
        if feature not in lines:
            continue
        line = lines[feature]
        size = part.stop - part.start
        components = line.arguments.get("tuneable-components")
        flags = components.split(",") if components else ["true"] * size
        if len(flags) != size:
            raise ini.error(f"{line.name}: {size} features but {len(flags)} tuneable-components", line.line)
        allowed = line.arguments.get("tuneable", "true") != "false"
        tuneable[part] = [allowed and flag == "true" for flag in flags]
    return tuneable
