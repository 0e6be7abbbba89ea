"""`--json`: what a command found or did, as one document for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

SCHEMA_VERSION = 1
STANDARD = "-"


json_option = click.option(
    "--json", "json_file", is_flag=False, flag_value=STANDARD, metavar="[FILE]",
    help="Write results as JSON to FILE or standard output.",
)  # fmt: skip


def json_document(
    path: str | None, inputs: Iterable[str | None] = (), outputs: Iterable[str | None] = (), indent: int = 2
) -> Callable[[Mapping[str, Any]], None]:
    """Where the document of the running command goes; its file appears when the command has ended well.

    Args:
        path: of `--json`; None writes nothing.
        inputs: what the command reads.
        outputs: what else it writes.
        indent: blanks a level.

    Returns:
        Takes the document; `schema_version` is added if it has none.

    Raises:
        click.UsageError: document and data would both go to standard output, or the file holds something else.
        PhraseToolError: the document would take the place of an input or of another output, or cannot be written.
    """
    from moses_compat.files.streams import Output
    from phrasetool_cli.checks import check_outputs

    if path is None:
        return lambda document: None
    outputs = list(outputs)
    if path == STANDARD and STANDARD in outputs:
        raise click.UsageError(
            "--json and the output both go to standard output; write one of them to a file (--json FILE or -o FILE)"
        )
    check_outputs(inputs, [*outputs, path])
    _check_file(path)
    output = click.get_current_context().with_resource(Output(path))

    def write(document: Mapping[str, Any]) -> None:
        whole = {"schema_version": SCHEMA_VERSION, **document}
        # Counts may be scalars of numpy.
        text = json.dumps(whole, indent=indent, ensure_ascii=False, default=lambda value: value.item())
        output.write_text(f"{text}\n".encode("utf-8", "replace"))
        output.flush()

    return write


def _check_file(path: str) -> None:
    """Refuse a file that holds something else: `--json` before an argument takes that for its FILE."""
    from moses_compat.files.packing import HEAD_BYTES, packing_for, without_ending

    if path == STANDARD or not os.path.isfile(path):
        return
    with open(path, "rb") as there:
        head = there.read(HEAD_BYTES)
    # What was written before was JSON, plain or compressed.
    packed = without_ending(path).endswith(".json") and (packing := packing_for(path)) and packing.begins(head, path)
    if head and head[:1] not in (b"{", b"[") and not packed:
        raise click.UsageError(
            f"--json {path}: this file is there and is no JSON; name another one, or write `--json -` for standard "
            "output"
        )
