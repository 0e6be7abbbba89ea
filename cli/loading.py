"""Loading a decoder's model, with progress and a word about what was loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phrasetool_cli.progress import TableProgress, say

if TYPE_CHECKING:
    from moses_compat.decoder_tables import InputPhrases
    from moses_compat.decoding import LoadProgress, MosesModel
    from phrasetool.smt.decoder.translator import Translator


def load_progress(model: MosesModel, quiet: bool) -> LoadProgress:
    """Shows how far the reading of the model's tables is."""
    import os

    sizes = {"phrase table": model.table, "reordering table": model.reordering or ""}
    bars: dict[str, TableProgress] = {}

    def report(label: str, position: int, entries: int) -> None:
        if label not in bars:
            for bar in bars.values():
                bar.__exit__(None, None, None)
            size = os.path.getsize(sizes[label]) if os.path.isfile(sizes[label]) else 0
            bars[label] = TableProgress(f"reading the {label}", size, quiet)
        bars[label](position, entries)

    return report


def load_translator(
    model: MosesModel, text: bytes, threads: int, quiet: bool
) -> tuple[Translator, InputPhrases]:
    """Load what the translation of a text needs; see `MosesModel.load`."""
    translator, source = model.load(text, threads, load_progress(model, quiet))
    if not quiet:
        table = translator.table
        copies = int(table.copies.sum())
        say(
            f"{len(source.sentences):,} sentences; {len(table) - copies:,} entries of {model.table} can be used, "
            f"{copies:,} words have no translation and will be copied"
        )
    return translator, source
