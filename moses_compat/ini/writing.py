"""A moses.ini from nothing, as train-model.perl writes it."""

from __future__ import annotations

from moses_compat.ini.editing import writable_path
from phrasetool.smt.decoder.features import FeatureSet
from phrasetool.smt.decoder.orientation import ReorderingModel


def new_moses_ini(
    table: str, columns: int, language_model: str, order: int, reordering: str | None = None,
    reordering_type: str = "wbe-msd-bidirectional-fe-allff", distortion_limit: int = 6,
) -> str:  # fmt: skip
    """The text of a moses.ini as train-model.perl writes it, with its default weights.

    Args:
        table: path of the phrase table.
        columns: its scores per entry.
        language_model: path of an ARPA file or kenlm binary.
        order: its order.
        reordering: path of a reordering table.
        reordering_type: its type.
        distortion_limit: words a jump may span.

    Raises:
        PhraseToolError: a path has a character that no path in an ini can have.
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
        lines.append(
            f"LexicalReordering name=LexicalReordering0 num-features={size} type={reordering_type} {factors} "
            f"path={reordering}"
        )
    lines += ["Distortion", f"KENLM name=LM0 factor=0 path={language_model} order={order}", "", "[weight]"]
    lines.append("UnknownWordPenalty0= 1")
    lines += [f"{features.name(f)}= {' '.join(f'{w:g}' for w in weights[part])}" for f, part in slices.items()]
    return "".join(f"{line}\n" for line in lines)
