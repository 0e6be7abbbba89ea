"""`phrasetool annotate`."""

from __future__ import annotations

import click

from phrasetool_cli.options import check_outputs, default_model, table_options, without_scipy

_EXAMPLE = """\b
Example:
  phrasetool annotate phrase-table.gz -m phrasetool-model -o phrase-table.annotated.gz
  phrasetool annotate demo-output/engine/phrase-table.gz -m demo-output/model -o - | head -3
"""


@click.command(short_help="Add similarity columns to a phrase table.", epilog=_EXAMPLE)
@click.argument("table")
@click.option("-m", "--model", "model_folders", multiple=True, metavar="FOLDER",
              help="Model folder; may be repeated.  [default: $PHRASETOOL_MODEL, else ./phrasetool-model]")  # fmt: skip
@click.option("-o", "--output", metavar="FILE",
              help="Where to write; `-` is standard output.  [default: TABLE.annotated.gz]")  # fmt: skip
@click.option("--scale", type=click.Choice(["exp", "probability", "raw"]), default="exp", show_default=True,
              help="How a similarity s is written: exp(s - 1), (1 + s)/2, or s.  Moses takes the logarithm of every "
                   "score, so only the first two are for Moses.")  # fmt: skip
@table_options
@without_scipy()
def command(
    table: str,
    model_folders: tuple[str, ...],
    output: str | None,
    scale: str,
    threads: int,
    block_bytes: int,
    on_error: str,
    quiet: bool,
) -> None:
    """Append the similarity of source and target, in both directions, to the scores of every entry of TABLE.

    Two columns per model: source-to-target, then target-to-source.  Everything else of a line stays as it is, byte
    for byte.  TABLE is a Moses phrase table in text form, gzip or not; `-` is standard input.
    """
    from moses_compat.annotate import annotate_table
    from moses_compat.streams import Input, Output
    from phrasetool.models.storage import load_model
    from phrasetool_cli.progress import TableProgress, say

    output = output or _default_output(table)
    check_outputs([table], [output])
    models = [load_model(folder) for folder in model_folders or (default_model(),)]
    with (
        Input(table) as source,
        Output(output) as destination,
        TableProgress("annotate", source.size(), quiet) as progress,
    ):
        counts = annotate_table(
            source,
            destination,
            models,
            scale=scale,
            on_error=on_error,
            threads=threads,
            block_bytes=block_bytes,
            progress=progress,
        )
    if not quiet:
        columns = 2 * len(models)
        silent = f"; {counts.without_opinion:,} have only unknown words on a side" if counts.without_opinion else ""
        faulty = f"; {counts.faulty:,} faulty lines" if counts.faulty else ""
        say(f"annotated {counts.entries:,} entries{silent}{faulty}")
        if counts.scores >= 0:
            say(
                f"entries now have {counts.scores + columns} scores instead of {counts.scores}: set "
                f"num-features={counts.scores + columns} in moses.ini and give the weight line {columns} more numbers"
            )


def _default_output(table: str) -> str:
    if table == "-":
        return "-"
    return table.removesuffix(".gz") + ".annotated.gz"
