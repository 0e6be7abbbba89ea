"""`phrasetool translate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from phrasetool_cli.shared.flags import default_model, engine_options, model_option, output_option
from phrasetool_cli.shared.input_checks import check_inputs
from phrasetool_cli.shared.json_output import json_document, json_option
from phrasetool_cli.shared.output_checks import check_outputs
from phrasetool_cli.shared.progress import ItemProgress, TableProgress, TerminalWatch
from phrasetool_cli.shared.sections import SectionedCommand, sections

if TYPE_CHECKING:
    from phrasetool.models.neural import NeuralModel
    from phrasetool.phrases import Phrases

_EXAMPLE = """\b
Example:
  phrasetool translate test.de -m translator --beam 5 -o test.out
  phrasetool translate test.de -m translator --table phrase-table.gz --dictionary lex.e2f -o test.out
  phrasetool train --model continuous demo-output/corpus.zh demo-output/corpus.en -o demo-output/translator --epochs 2
  phrasetool translate demo-output/corpus.zh -m demo-output/translator -o demo-output/translated.en
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("text", default="-")
@sections(
    "Model",
    model_option,
    click.option("--new-words", metavar="FILE",
                 help="Target words to add, one a line, that training has not seen; see --target-vectors."),
    click.option("--target-vectors", metavar="FILE", help="Vectors of new words: the file that training was given."),
    "What is written",
    output_option("Translations."),
    click.option("--drop-repetitions", is_flag=True, help="Leave out words that repeat the word before."),
    click.option("--escape/--no-escape", "escape", default=None,
                 help="Write Moses' escapes, or not.  [default: as in TEXT, else as in the text of the training]"),
    json_option,
    "Search",
    click.option("--beam", type=click.IntRange(1, 1000), default=1, metavar="K",
                 help="Hypotheses kept at a time; 1 takes the nearest word at every step."),
    click.option("--table", metavar="FILE",
                 help="Use only words that this phrase table has for the spans of a sentence."),
    click.option("--dictionary", metavar="FILE",
                 help="What to write for unknown words: `source ||| target`, two columns, or a lex.e2f.  "
                      "[default: the source word that has most attention]"),
    engine_options,
)  # fmt: skip
def command(
    text: str, model_folder: str | None, new_words: str | None, target_vectors: str | None, output: str,
    drop_repetitions: bool, escape: bool | None, json_file: str | None, beam: int, table: str | None,
    dictionary: str | None, threads: int, quiet: bool,
) -> None:  # fmt: skip
    """Translate text with a translator that predicts word vectors.

    TEXT has one tokenised sentence a line (`-` is standard input); an empty line gives an empty line.  The model is
    one of `phrasetool train --model continuous`.  At every step it predicts a vector, and the target word with the
    nearest one is written.  A sentence's translation depends neither on the others nor on the number of threads.
    """
    from moses_compat.corpora.dictionary import read_dictionary
    from moses_compat.corpora.written_text import WrittenText, written_words
    from moses_compat.files.streams import Output
    from phrasetool.models.storage import load_neural_model
    from phrasetool.neural.beam import translate, without_repetitions, written

    if (new_words is None) != (target_vectors is None):
        raise click.UsageError("--new-words and --target-vectors belong together; give both")
    inputs = [text, table, dictionary, new_words, target_vectors]
    check_outputs(inputs, [output])
    check_inputs(inputs)
    document = json_document(json_file, inputs, [output])
    watch = TerminalWatch(quiet)
    model = load_neural_model(model_folder or default_model())
    if new_words and target_vectors:
        model = _with_new_words(model, new_words, target_vectors, watch)
    words = {} if dictionary is None else read_dictionary(dictionary)
    read = WrittenText.read(text)
    sentences = read.ids(model.source_vocabulary)
    _check_text(text, sentences, watch)
    full = sentences.lengths.nonzero()[0]
    candidates = None
    if table:
        from moses_compat.corpora.span_candidates import span_words

        with TableProgress("read the table", 0, quiet) as reading:
            candidates = span_words(table, read.sentences.select(full), read.symbols, model.target_vocabulary, reading)
    with ItemProgress("translating", len(full), "sentence", quiet) as progress:
        found = translate(
            model.network, sentences.select(full), model.temperature, beam, candidates, threads, progress.tick
        )
        seconds = progress.seconds
    escaped = escape if escape is not None else read.escaped
    escaped = bool(model.training.get("escaped")) if escaped is None else escaped
    known, copies = written_words(model.target_vocabulary.words, escaped), read.copies(words, escaped)
    lines = [b""] * len(sentences)
    for place, translation in zip(full.tolist(), found, strict=True):
        line = written(translation, known, read.words(place), copies)
        lines[place] = b" ".join(without_repetitions(line) if drop_repetitions else line)
    with Output(output) as out:
        out.write_text(b"".join(line + b"\n" for line in lines))
    scores = sum(translation.score for translation in found) / max(len(found), 1)
    copied = sum(word == 0 for translation in found for word in translation.words)
    document({"signature": model.signature, "sentences": len(lines), "mean_score": scores, "unknown_words": copied})
    watch.say(
        f"{len(lines):,} sentences translated in {seconds:.1f} s, mean score {scores:.3f}, {copied:,} unknown words"
    )


def _check_text(path: str, sentences: Phrases, watch: TerminalWatch) -> None:
    """Refuse sentences that are too long; warn of a text of which hardly a word is known."""
    import numpy as np

    from moses_compat.files.names import display_name
    from phrasetool.encoders.mean_max.parameters import LONGEST
    from phrasetool.errors import DataError
    from phrasetool.models.fit import FEWEST, HARDLY_KNOWN
    from phrasetool.vocabulary import UNKNOWN

    if len(too_long := np.flatnonzero(sentences.lengths > LONGEST)):
        line = int(too_long[0])
        message = f"the sentence has {sentences.lengths[line]} words; a translator reads at most {LONGEST}"
        raise DataError(display_name(path), message, line + 1)
    size = len(sentences.words)
    known = float((sentences.words != UNKNOWN).mean()) if size else 1.0
    if size >= FEWEST and known < HARDLY_KNOWN:
        watch.warn(f"{display_name(path)}: the model knows {known:.1%} of its {size:,} words; is it another language?")


def _with_new_words(model: NeuralModel, words: str, vectors: str, watch: TerminalWatch) -> NeuralModel:
    """The model with more target words, whose vectors are of the space that it predicts in."""
    from moses_compat.corpora.texts import read_texts
    from moses_compat.files.byte_stream import open_bytes
    from moses_compat.files.names import display_name
    from phrasetool.embeddings.files import load_vectors
    from phrasetool.errors import DataError
    from phrasetool.models.new_words import new_target_vectors

    listed = read_texts(words)[1].words
    known = load_vectors(vectors, [*model.target_vocabulary.words, *listed], model.dimension, open_bytes)
    try:
        added = new_target_vectors(model, listed, known)
        larger = model.with_words(added)
    except ValueError as error:
        raise DataError(display_name(vectors), str(error)) from error
    watch.say(f"{len(added):,} target words were added")
    return larger
