"""Loading a decoder's model, with progress and a word about what was loaded."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from phrasetool_cli.shared.progress import TableProgress, say

if TYPE_CHECKING:
    from moses_compat.engine.decoder_tables import InputPhrases
    from moses_compat.engine.model import LoadProgress, MosesModel
    from phrasetool.smt.decoder.translator import Translator


@contextlib.contextmanager
def load_progress(model: MosesModel, quiet: bool) -> Iterator[LoadProgress]:
    """Shows how far the reading of the model's tables is."""
    paths = {"phrase table": model.table, "reordering table": model.reordering or ""}
    bars: dict[str, TableProgress] = {}
    with contextlib.ExitStack() as shown:

        def report(label: str, position: int, entries: int) -> None:
            if label not in bars:
                shown.close()
                size = os.path.getsize(paths[label]) if os.path.isfile(paths[label]) else 0
                bars[label] = shown.enter_context(TableProgress(f"reading the {label}", size, quiet))
            bars[label](position, entries)

        yield report


def load_translator(model: MosesModel, text: bytes, threads: int, quiet: bool) -> tuple[Translator, InputPhrases]:
    """Load what the translation of a text needs; see `MosesModel.load`."""
    with load_progress(model, quiet) as progress:
        translator, source = model.load(text, threads, progress)
    if not quiet:
        table = translator.table
        copies = int(table.copies.sum())
        say(
            f"{len(source.sentences):,} sentences; {len(table) - copies:,} entries of {model.table} can be used, "
            f"{copies:,} words have no translation and will be copied"
        )
    return translator, source
