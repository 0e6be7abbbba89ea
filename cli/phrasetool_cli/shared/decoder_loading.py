"""Loading a decoder's model, with progress and a word about what was loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phrasetool_cli.progress import TerminalWatch, say

if TYPE_CHECKING:
    from moses_compat.engine.decoder_tables import InputPhrases
    from moses_compat.engine.model import MosesModel
    from phrasetool.smt.decoder.translator import Translator


def load_translator(model: MosesModel, text: bytes, threads: int, quiet: bool) -> tuple[Translator, InputPhrases]:
    """Load what the translation of a text needs; see `MosesModel.load`."""
    watch = TerminalWatch(quiet)
    with watch.reading(model.tables) as progress:
        translator, source = model.load(text, threads, progress)
    if not quiet:
        table = translator.table
        copies = int(table.copies.sum())
        say(
            f"{len(source.sentences):,} sentences; {len(table) - copies:,} entries of {model.shown_tables} "
            f"can be used, {copies:,} words have no translation and will be copied"
        )
    model.tell_paths(watch)
    return translator, source
