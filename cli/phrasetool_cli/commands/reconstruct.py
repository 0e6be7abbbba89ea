"""`phrasetool reconstruct`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.checks import check_outputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.messages import write
from phrasetool_cli.options import (
    default_model,
    device_option,
    engine_options,
    json_document,
    json_option,
    model_option,
    standard_output,
)
from phrasetool_cli.progress import ItemProgress, TableProgress

if TYPE_CHECKING:
    from phrasetool.autoencoder.inference import ReconstructedLines, ReconstructionQuality
    from phrasetool.autoencoder.model import AutoencoderModel
    from phrasetool.phrases import Phrases

_EXAMPLE = """\b
Example:
  phrasetool reconstruct held-out.en -m autoencoder.en --by-length
  phrasetool train autoencoder demo-output/corpus.en -o demo-output/autoencoder --epochs 60
  phrasetool reconstruct demo-output/corpus.en -m demo-output/autoencoder -o demo-output/back.en
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("text")
@sections(
    "Input",
    model_option,
    click.option("--limit", type=click.IntRange(1), metavar="N", help="Use the first N lines only."),
    click.option("--by-length", is_flag=True, help="Also report figures by length."),
    "Output",
    click.option("-o", "--output", metavar="FILE", callback=standard_output,
                 help="Write the reconstructions, one per line."),
    json_option,
    None,
    device_option(),
    engine_options,
)  # fmt: skip
def command(
    text: str, model_folder: str | None, output: str | None, limit: int | None, by_length: bool, device: str,
    json_file: str | None, threads: int, quiet: bool,
) -> None:  # fmt: skip
    """Measure the reconstruction accuracy of an autoencoder.

    Encodes every line of TEXT as a vector, decodes the vector, and compares the result with the line.  TEXT has one
    tokenised sentence or paragraph per line (plain or gzip, - is standard input) and no empty lines; the model is an
    autoencoder (`phrasetool train autoencoder`).  A line is decoded greedily from its vector alone, until the end
    symbol or 1.5 times its number of words.

    BLEU is sacrebleu's, as in `phrasetool evaluate`; ROUGE-1 and ROUGE-2 are means of the lines' F1 over words and
    over pairs of words.  The reference is TEXT unchanged: words that the model does not know cannot be reconstructed.
    """
    import torch

    from moses_compat.corpora.texts import read_texts
    from moses_compat.files.paths import display_name
    from moses_compat.files.streams import Output
    from phrasetool.autoencoder.inference import reconstruct_lines
    from phrasetool.autoencoder.model import AutoencoderModel
    from phrasetool.nn.device import choose_device
    from phrasetool.smt.evaluation.metrics import split_words_note

    check_outputs([text], [output])
    document = json_document(json_file, [text], [output])
    model = AutoencoderModel.load(model_folder or default_model())
    torch_device = choose_device(device)
    torch.set_num_threads(threads)
    with TableProgress("read text", 0, quiet) as reading:
        texts, symbols = read_texts(text, reading, as_written=True)
    texts = texts.part(0, min(limit or len(texts), len(texts)))
    _check_lengths(text, texts)
    with ItemProgress("reconstruct", len(texts), "text", quiet) as progress:
        reconstructions = reconstruct_lines(model, texts, symbols.words, torch_device, progress.tick)
    if output is not None:
        with Output(output) as out:
            out.write_text(b"".join(line + b"\n" for line in reconstructions.lines))
    # Bytes that are not UTF-8 remain distinct characters.
    lines = [symbols.join(words).decode("utf-8", "surrogateescape") for words in texts]
    if note := split_words_note(display_name(text), lines):
        write(note, "warning")
    figures = _figures(model, texts, lines, reconstructions, by_length)
    document(figures)
    if json_file != "-":
        click.echo("\n".join(_table(figures)), err=output == "-")


def _check_lengths(path: str, texts: Phrases) -> None:
    import numpy as np

    from moses_compat.files.paths import display_name
    from phrasetool.errors import DataError
    from phrasetool.nn.positions import LONGEST

    if len(too_long := np.flatnonzero(texts.lengths > LONGEST)):
        line = int(too_long[0])
        message = f"the line has {texts.lengths[line]} words; an autoencoder encodes at most {LONGEST}"
        raise DataError(display_name(path), message, line + 1)


def _figures(
    model: AutoencoderModel, texts: Phrases, lines: list[str], reconstructed: ReconstructedLines, by_length: bool
) -> dict[str, Any]:
    from phrasetool.autoencoder.inference import quality_by_length, reconstruction_quality

    written = [line.decode("utf-8", "surrogateescape") for line in reconstructed.lines]
    figures = {
        "signature": model.signature,
        "dimension": model.dimension,
        "words": len(texts.words),
        "unknown_words": len(texts.words) - reconstructed.known,
        **_rounded(reconstruction_quality(written, lines)),
    }
    if by_length:
        groups = quality_by_length(written, lines).items()
        figures["by_length"] = [{"from": first, "to": last, **_rounded(quality)} for (first, last), quality in groups]
    return figures


def _rounded(quality: ReconstructionQuality) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(quality).items()}


def _table(figures: dict[str, Any]) -> list[str]:
    share = figures["unknown_words"] / figures["words"]
    rows = [("all", figures)]
    rows += [(f"{group['from']}-{group['to']}", group) for group in figures.get("by_length", [])]
    return [
        f"{figures['texts']:,} texts of {figures['words']:,} words, {share:.1%} of them unknown to the model, "
        f"from {figures['dimension']} numbers each",
        f"{'words':>9}  {'texts':>8}  {'BLEU':>6}  {'ROUGE-1':>7}  {'ROUGE-2':>7}  {'word for word':>13}",
        *(
            f"{name:>9}  {row['texts']:>8,}  {row['bleu']:6.2f}  {row['rouge_1']:7.2f}  {row['rouge_2']:7.2f}  "
            f"{row['exact']:>11.1f} %"
            for name, row in rows
        ),
        f"BLEU: {figures['bleu_signature']}",
    ]
