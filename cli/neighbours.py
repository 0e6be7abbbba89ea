"""`phrasetool neighbours`."""

from __future__ import annotations

import json

import click

from phrasetool.errors import PhraseToolError
from phrasetool_cli.options import default_model, model_option

_EXAMPLE = """\b
Example:
  phrasetool neighbours "do not agree" -m phrasetool-model --pairs pairs.gz
  phrasetool neighbours "do not agree" -m demo-output/model --pairs demo-output/pairs.gz
"""


@click.command(short_help="Show the phrases nearest to a phrase.", epilog=_EXAMPLE)
@click.argument("phrase", nargs=-1, required=True)
@model_option
@click.option("--pairs", metavar="FILE",
              help="Phrases to search: pairs or a table.  [default: the pairs the model was trained on]")  # fmt: skip
@click.option("--side", type=click.Choice(["source", "target", "auto"]), default="auto", show_default=True,
              help="The language of PHRASE; auto: the one that knows more of its words.")  # fmt: skip
@click.option("-k", "--count", type=click.IntRange(1), default=5, show_default=True, help="How many to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    phrase: tuple[str, ...], model_folder: str | None, pairs: str | None, side: str, count: int, as_json: bool
) -> None:
    """Show the phrases nearest to PHRASE in its own language, and those nearest to its transformation in the other."""
    from moses_compat.pairs import read_pairs
    from moses_compat.streams import Input
    from phrasetool.models.storage import load_bilingual_model
    from phrasetool.neighbours import PhraseIndex

    model = load_bilingual_model(model_folder or default_model())
    text = " ".join(phrase).encode()
    sides = {"source": model.source_vocabulary, "target": model.target_vocabulary}
    known = {name: sum(word > 0 for word in vocabulary.ids(text)) for name, vocabulary in sides.items()}
    if side == "auto":
        side = "target" if known["target"] > known["source"] else "source"
    if not known[side]:
        raise PhraseToolError(f"the model knows no word of {text.decode()!r} in the {side} language")
    file = pairs or model.training.get("pairs_file")
    if not file:
        raise PhraseToolError("the model does not say what it was trained on; name phrases to search with --pairs")
    with Input(file) as source:
        data = read_pairs(source, vocabularies=(model.source_vocabulary, model.target_vocabulary))
    index = PhraseIndex(model, data.sources, data.targets)
    same, across = index.nearest(sides[side].ids(text), side == "target", count)
    other = "source" if side == "target" else "target"
    if as_json:
        found = {
            name: [{"phrase": n.text.decode("utf-8", "replace"), "similarity": round(n.similarity, 6)} for n in list_]
            for name, list_ in ((side, same), (other, across))
        }
        click.echo(json.dumps({"phrase": text.decode(), "side": side, **found}, indent=2, ensure_ascii=False))
        return
    for title, list_ in (
        (f"nearest in the same language ({side})", same),
        (f"nearest in the {other} language", across),
    ):
        click.echo(title)
        for neighbour in list_:
            click.echo(f"  {neighbour.similarity:6.3f}  {neighbour.text.decode('utf-8', 'replace')}")
