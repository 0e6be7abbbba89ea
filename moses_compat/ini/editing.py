"""Edits of a moses.ini that leave all other bytes unchanged.

The copies keep comments, blank lines, the order of sections, unknown sections, CRs, bytes that are not UTF-8, a missing
last newline and the spelling of unchanged numbers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from moses_compat.files.paths import same_file
from moses_compat.ini.moses_ini import (
    FeatureLine,
    MosesIni,
    bare,
    like,
    number_text,
    with_arguments,
    with_numbers,
    with_words,
)
from moses_compat.ini.reading import WORD_POSITIONS
from phrasetool.errors import PhraseToolError
from phrasetool.smt.decoder.features import FeatureSet, ReorderingModel
from phrasetool.text_splitting import split_lines


def with_weights(ini: MosesIni, weights: Mapping[str, Sequence[float]], comment: str = "") -> str:
    """Return the text of an ini with these weights.

    Args:
        ini: an ini of version 1 or 2.
        weights: feature name -> numbers; in version 2, a feature without a weight line gets one.
        comment: lines to put at the top, without `#`.

    Raises:
        DataError: in version 1, the number of weights of a feature in the ini differs from that in `weights`.
    """
    lines = list(ini.lines)
    missing = {}
    for name, values in weights.items():
        if ini.version == 1:
            line_numbers = ini.number_lines.get(name, [])
            if len(line_numbers) != len(values):
                raise ini.error(f"{name} has {len(line_numbers)} weights, not {len(values)}")
            for line_number, value in zip(line_numbers, values, strict=True):
                lines[line_number - 1] = with_numbers(lines[line_number - 1], [value], first=0)
        elif name in ini.weight_lines:
            line_number = ini.weight_lines[name]
            lines[line_number - 1] = with_numbers(lines[line_number - 1], values)
        else:
            missing[name] = values
    if missing:
        _add_weights(lines, missing)
    head = [like(f"# {line}", ini.lines[0]) for line in split_lines(comment)]
    return "\n".join([*head, *lines])


def _add_weights(lines: list[str], weights: Mapping[str, Sequence[float]]) -> None:
    """Insert weight lines below the header of the last `[weight]` section, or into a new section at the end."""
    texts = [f"{name}= {' '.join(map(number_text, values))}" for name, values in weights.items()]
    heads = [i for i, line in enumerate(lines) if _section(line) == "weight"]
    index = heads[-1] + 1 if heads else len(lines)
    if not heads:
        # The last line is the text after the last LF, which is empty if the file ends with LF.
        index -= not lines[-1]
        texts = ["", "[weight]", *texts, *([""] if lines[-1] else [])]
    lines[index:index] = [like(text, lines[index - 1]) for text in texts]


def _section(line: str) -> str | None:
    text = bare(line)
    return text[1 : text.index("]")] if text.startswith("[") and "]" in text else None


def moved_to(ini: MosesIni, folder: str) -> MosesIni:
    """Return the ini for writing into another folder: paths relative to its own folder become absolute."""
    if os.path.abspath(folder) == os.path.abspath(os.path.dirname(ini.path)):
        return ini
    lines = list(ini.lines)
    for feature in ini.features:
        path = feature.arguments.get("path", "")
        if path and not os.path.isabs(path) and (ini.path_base.folder or not os.path.exists(path)):
            absolute = writable_path(os.path.abspath(ini.resolve(path)))
            lines[feature.line - 1] = _with_arguments(lines[feature.line - 1], feature, {"path": absolute})
    return replace(ini, lines=lines)


def with_relative_paths(ini: MosesIni) -> str:
    """Return the text of an ini with all paths relative to its folder, so that the folder can be moved as a whole.

    Raises:
        PhraseToolError: a path has a character that is not allowed in an ini.
    """
    folder = os.path.realpath(os.path.dirname(os.path.abspath(ini.path)))
    lines = list(ini.lines)
    for feature in ini.features:
        if path := feature.arguments.get("path"):
            file = ini.resolve(path)
            # The path of a symbolic link has the link's folder, not that of its target.
            real = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(file))), os.path.basename(file))
            relative = writable_path(os.path.relpath(real, folder))
            lines[feature.line - 1] = _with_arguments(lines[feature.line - 1], feature, {"path": relative})
    return "\n".join(lines)


def writable_path(path: str) -> str:
    """Return the path if a line of an ini can hold it.

    Raises:
        PhraseToolError: the path has a blank, which separates words, or a `#`, which begins a comment.
    """
    if any(character in path for character in " \t\r\n#"):
        raise PhraseToolError(f"{path}: a path in a moses.ini can have no blank and no #; use another name or a link")
    return path


def _with_arguments(line: str, feature: FeatureLine, changed: Mapping[str, str]) -> str:
    """Return the line of a feature with changed arguments, in either version."""
    if feature.section == "feature":
        return with_arguments(line, changed)
    return with_words(line, {WORD_POSITIONS[feature.section][key]: value for key, value in changed.items()})


def with_reordering_table(ini: MosesIni, path: str) -> MosesIni:
    """Return the ini with the path of another reordering table of the same type.

    Raises:
        DataError: the ini has no reordering table, or several.
        PhraseToolError: the path cannot be written.
    """
    tables = [feature for feature in ini.features if feature.kind == "LexicalReordering"]
    if len(tables) != 1:
        raise ini.error(f"expected one reordering table, found {len(tables)}: edit the ini by hand")
    old, changed = tables[0], {"path": writable_path(path)}
    new = replace(old, arguments={**old.arguments, **changed})
    lines = list(ini.lines)
    lines[old.line - 1] = _with_arguments(lines[old.line - 1], old, changed)
    return replace(ini, lines=lines, features=[new if feature is old else feature for feature in ini.features])


def with_table(ini: MosesIni, table: FeatureLine, path: str | None, columns: int, weight: float = 0.0) -> str:
    """Return the text of an ini with another phrase table.

    The new columns must follow the old ones.  With a weight of 0 for the new columns all model scores are unchanged.

    Args:
        ini: an ini of version 1 or 2.
        table: one of its tables that `tables.check_table` accepts.
        path: the new table; None keeps the path.
        columns: number of scores per entry of the new table.
        weight: weight of each new column.

    Raises:
        PhraseToolError: the table of the ini has more columns, or the path has a character that is not allowed.
    """
    before = int(table.arguments.get("num-features", "1"))
    if columns < before:
        raise ini.error(f"{table.name} has {before} scores, but {path or 'the table'} only {columns}", table.line)
    changed = {} if path is None else {"path": writable_path(path)}
    new = columns - before
    if new:
        changed["num-features"] = str(columns)
    if new and "tuneable-components" in table.arguments:
        changed["tuneable-components"] = ",".join([table.arguments["tuneable-components"], *["true"] * new])
    lines = list(ini.lines)
    lines[table.line - 1] = _with_arguments(lines[table.line - 1], table, changed)
    edited = replace(ini, lines=lines)
    if not new:
        return edited.text
    if ini.version == 2:
        # Without a weight line, Moses takes 1 for each.
        old = ini.weights.get(table.name, [1.0] * before)
        return with_weights(edited, {table.name: [*old, *[weight] * new]})
    last = ini.number_lines[table.name][-1]
    lines[last:last] = [like(number_text(weight), lines[last - 1])] * new
    return edited.text


def with_table_file(ini: MosesIni, table: FeatureLine, path: str, columns: int, weight: float, output: str) -> str:
    """Return the text of an ini that names another phrase table file, for writing to `output`.

    Args:
        ini: an ini of version 1 or 2.
        table: one of its tables, see `with_table`.
        path: the new table file; if the ini names it already, the path keeps its spelling.
        columns: number of scores per entry of that file.
        weight: weight of each new column.
        output: the file to which the text will be written; decides how relative paths are written.
    """
    same = same_file(ini.resolve(table.arguments["path"]), path)
    moved = moved_to(ini, os.path.dirname(output))
    return with_table(moved, table, None if same else os.path.abspath(path), columns, weight)


def new_moses_ini(
    table: str, columns: int, language_model: str, order: int, reordering: str | None = None,
    reordering_type: str = "wbe-msd-bidirectional-fe-allff", distortion_limit: int = 6,
) -> str:  # fmt: skip
    """Return the text of a moses.ini as train-model.perl writes it, with its default weights.

    Args:
        table: path of the phrase table.
        columns: number of scores per entry of the phrase table.
        language_model: path of an ARPA file or kenlm binary.
        order: n-gram order of the language model.
        reordering: path of a reordering table.
        reordering_type: type of the reordering table.
        distortion_limit: largest number of words that a jump may span.

    Raises:
        PhraseToolError: a path has a character that is not allowed in an ini.
    """
    for path in (table, language_model, reordering or ""):
        writable_path(path)
    features = FeatureSet((columns,), ReorderingModel.parse(reordering_type) if reordering else None)
    weights, slices = features.default_weights(), features.slices
    factors = "input-factor=0 output-factor=0"
    lines = [
        "[input-factors]", "0", "", "[mapping]", "0 T 0", "", "[distortion-limit]", str(distortion_limit), "",
        "[feature]", "UnknownWordPenalty", "WordPenalty", "PhrasePenalty",
        f"PhraseDictionaryMemory name=TranslationModel0 num-features={columns} path={table} {factors}",
    ]  # fmt: skip
    if reordering and features.reordering:
        size = features.reordering.weights
        # With output-factor, Moses expects a target phrase in each line of the table.
        factors_of_table = "input-factor=0" if features.reordering.source_only else factors
        lines.append(
            f"LexicalReordering name=LexicalReordering0 num-features={size} type={reordering_type} {factors_of_table} "
            f"path={reordering}"
        )
    lines += ["Distortion", f"KENLM name=LM0 factor=0 path={language_model} order={order}", "", "[weight]"]
    lines.append("UnknownWordPenalty0= 1")
    lines += [f"{features.name(f)}= {' '.join(f'{w:g}' for w in weights[part])}" for f, part in slices.items()]
    return "".join(f"{line}\n" for line in lines)
