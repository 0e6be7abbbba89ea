"""`phrasetool translate`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from phrasetool_cli.checks import check_inputs, check_outputs
from phrasetool_cli.command import SectionedCommand, sections, together
from phrasetool_cli.options import (
    default_model,
    device_option,
    engine_options,
    json_document,
    json_option,
    model_option,
    output_option,
)
from phrasetool_cli.progress import ItemProgress, TableProgress, TerminalWatch

if TYPE_CHECKING:
    from moses_compat.corpora.translated_texts import WrittenText
    from phrasetool.phrases import Phrases
    from phrasetool.translator.decoding import TranslatedSentence
    from phrasetool.translator.model import TranslatorModel

_EXAMPLE = """\b
Example:
  phrasetool translate test.de -m translator --beam 5 -o test.out
  phrasetool translate test.de -m translator --beam 10 --n-best-list test.nbest 10 -o test.out
  phrasetool translate test.de -m translator --table phrase-table.gz --dictionary lex.f2e -o test.out
  phrasetool train translator demo-output/corpus.zh demo-output/corpus.en -o demo-output/translator --epochs 2
  phrasetool translate demo-output/corpus.zh -m demo-output/translator -o demo-output/translated.en
"""


@click.command(cls=SectionedCommand, dependent=together("new_words", "target_vectors"), epilog=_EXAMPLE)
@click.argument("text", default="-")
@sections(
    "Model",
    model_option,
    click.option("--new-words", metavar="FILE",
                 help="Target words to add, one per line; needs --target-vectors."),
    click.option("--target-vectors", metavar="FILE", help="Vectors of new words: the file given to training."),
    "Output",
    output_option("Translations."),
    click.option("--n-best-list", "n_best", nargs=2, type=(str, click.IntRange(1)), metavar="FILE N",
                 help="Also write an n-best list in Moses' format; N at most --beam."),
    click.option("--drop-repetitions", is_flag=True, help="Drop words that repeat the previous word."),
    click.option("--escape/--no-escape", "escape", default=None,
                 help="Write Moses' escapes, or not.  [default: as in TEXT or the training text]"),
    json_option,
    "Search",
    click.option("--beam", type=click.IntRange(1, 1000), default=1, metavar="K",
                 help="Hypotheses kept at a time."),
    click.option("--table", metavar="FILE",
                 help="Restrict output to words that this phrase table has for the sentence."),
    click.option("--dictionary", metavar="FILE",
                 help="Translations of unknown words.  [default: copy the source word]"),
    device_option(),
    engine_options,
)  # fmt: skip
def command(
    text: str, model_folder: str | None, new_words: str | None, target_vectors: str | None, output: str,
    n_best: tuple[str, int] | None, drop_repetitions: bool, escape: bool | None, json_file: str | None, beam: int,
    table: str | None, dictionary: str | None, device: str, threads: int, quiet: bool,
) -> None:  # fmt: skip
    """Translate text with a neural translator.

    TEXT has one tokenised sentence per line (`-` is standard input); an empty line gives an empty line.  The model is
    one of `phrasetool train translator`.  At every step it predicts a vector, and the target word with the nearest
    vector is written; with a cross-entropy loss, the most probable word.  The translation of a sentence depends neither
    on other sentences nor on the number of threads.
    """
    from moses_compat.corpora.translated_texts import WrittenText, read_dictionary, written_words
    from moses_compat.files.streams import Output
    from phrasetool.nn.device import choose_device
    from phrasetool.translator.decoding import (
        TranslatedSentence,
        n_best_translations,
        remove_repetitions,
        replace_unknown_words,
    )
    from phrasetool.translator.model import TranslatorModel

    if (new_words is None) != (target_vectors is None):
        raise click.UsageError("--new-words and --target-vectors must be given together")
    listed, most = n_best or (None, 1)
    if most > beam:
        raise click.UsageError(
            f"{most} translations were requested, but the beam keeps {beam}; give --beam {most} or more"
        )
    inputs = [text, table, dictionary, new_words, target_vectors]
    check_outputs(inputs, [output, listed])
    check_inputs(inputs)
    document = json_document(json_file, inputs, [output, listed])
    watch, torch_device = TerminalWatch(quiet), choose_device(device)
    model = TranslatorModel.load(model_folder or default_model())
    if new_words and target_vectors:
        model = with_new_words(model, new_words, target_vectors, watch)
    words = {} if dictionary is None else read_dictionary(dictionary)
    read = WrittenText.read(text)
    sentences = read.ids(model.source_vocabulary)
    check_text(text, sentences, watch)
    check_dictionary(dictionary, words, text, read, watch)
    full = sentences.lengths.nonzero()[0]
    candidates = None
    if table:
        from moses_compat.corpora.translated_texts import span_words

        with TableProgress("read the table", 0, quiet) as reading:
            candidates = span_words(table, read.sentences.select(full), read.symbols, model.target_vocabulary, reading)
        if none := sum(not len(words) for words in candidates):
            watch.warn(
                f"{table}: {none:,} of {len(full):,} sentences have no candidate there; their translations are empty"
            )
    with ItemProgress("translating", len(full), "sentence", quiet) as progress:
        hypotheses = n_best_translations(
            model.network.to(torch_device), sentences.select(full), model.temperature, most, beam, candidates, threads,
            progress.tick,
        )  # fmt: skip
        seconds = progress.seconds
    escaped = escape if escape is not None else read.escaped
    escaped = bool(model.training.get("escaped")) if escaped is None else escaped

    def line_of(number: int, translation: TranslatedSentence) -> bytes:
        line = replace_unknown_words(translation, model.target_vocabulary.words, read.words(number), words)
        return b" ".join(written_words(remove_repetitions(line) if drop_repetitions else line, escaped))

    by_line = dict(zip(full.tolist(), hypotheses, strict=True))
    with Output(output) as out, Output(listed) if listed else contextlib.nullcontext() as listing:
        for number in range(len(sentences)):
            translations = by_line.get(number, [TranslatedSentence((), (), 0.0)])
            lines = [line_of(number, translation) for translation in translations]
            out.write_text(lines[0] + b"\n")
            if listing:
                listing.write_text(_listed(number, lines, translations))
    best = [translations[0] for translations in hypotheses]
    scores = sum(translation.score for translation in best) / max(len(best), 1)
    copied = sum(word == 0 for translation in best for word in translation.words)
    document({"signature": model.signature, "sentences": len(sentences), "mean_score": scores, "unknown_words": copied})
    watch.say(
        f"{len(sentences):,} sentences translated in {seconds:.1f} s, mean score {scores:.3f}, {copied:,} unknown words"
    )


def _listed(number: int, lines: Sequence[bytes], translations: Sequence[TranslatedSentence]) -> bytes:
    """Return the translations of a sentence as lines of an n-best list."""
    from moses_compat.engine.n_best import n_best_line

    return b"".join(
        n_best_line(number, line, f"Translator0= {translation.log_probability:.6g}", translation.score)
        for line, translation in zip(lines, translations, strict=True)
    )


def check_text(path: str, sentences: Phrases, watch: TerminalWatch) -> None:
    """Refuse sentences that are too long, and warn if the model knows hardly any word of the text.

    Raises:
        DataError: a sentence is too long.
    """
    import numpy as np

    from moses_compat.files.paths import display_name
    from phrasetool.errors import DataError
    from phrasetool.models.fit import FEWEST, MIN_KNOWN_SHARE
    from phrasetool.nn.positions import LONGEST
    from phrasetool.vocabulary import UNKNOWN

    if len(too_long := np.flatnonzero(sentences.lengths > LONGEST)):
        line = int(too_long[0])
        message = f"the sentence has {sentences.lengths[line]} words; a translator reads at most {LONGEST}"
        raise DataError(display_name(path), message, line + 1)
    size = len(sentences.words)
    known = float((sentences.words != UNKNOWN).mean()) if size else 1.0
    if known == 0 or (size >= FEWEST and known < MIN_KNOWN_SHARE):
        watch.warn(f"{display_name(path)}: the model knows {known:.1%} of its {size:,} words; is it another language?")


def check_dictionary(
    path: str | None, dictionary: Mapping[bytes, bytes], text: str, read: WrittenText, watch: TerminalWatch
) -> None:
    """Report how many words of a text a dictionary has; warn if it looks like one of the other direction.

    Args:
        path: file of the dictionary; None without one.
        dictionary: source word -> target word.
        text: path of the text.
        read: the text.
        watch: receives the message.

    Raises:
        DataError: the dictionary has none of the words.
    """
    from moses_compat.files.paths import display_name
    from phrasetool.errors import DataError
    from phrasetool.vocabulary import unescape

    text_words = {unescape(word) for word in read.symbols.words}
    if path is None or not text_words:
        return
    size = len(text_words)
    known = len(text_words & dictionary.keys())
    if not known:
        message = f"has none of the {size:,} different words of {display_name(text)}; expected words of its language"
        raise DataError(display_name(path), message)
    translations = text_words & set(dictionary.values())
    if len(translations) > known:
        message = (
            f"has {len(translations):,} of the {size:,} different words of {display_name(text)} as translations, but "
            f"only {known:,} as source words; expected the other direction (of Moses' lexical tables, lex.f2e)"
        )
        watch.warn(f"{display_name(path)}: {message}")
    watch.say(f"{display_name(path)} has {known:,} of the {size:,} different words of {display_name(text)}")


def with_new_words(model: TranslatorModel, words: str, vectors: str, watch: TerminalWatch) -> TranslatorModel:
    """Return the model with more target words, whose vectors are in the space that it predicts in.

    Args:
        model: the translator.
        words: file with one word per line.
        vectors: file of vectors, the one that was given to training.
        watch: receives the number of added words.

    Raises:
        DataError: a file cannot be read, or the vectors are not those of the model.
    """
    from moses_compat.corpora.texts import read_texts
    from moses_compat.files.paths import display_name
    from moses_compat.files.streams import open_bytes
    from phrasetool.embeddings.files import load_vectors
    from phrasetool.errors import DataError
    from phrasetool.translator.model import new_target_vectors

    listed = read_texts(words)[1].words
    known = load_vectors(vectors, [*model.target_vocabulary.words, *listed], model.dimension, open_bytes)
    try:
        added = new_target_vectors(model, listed, known)
        larger = model.with_words(added)
    except ValueError as error:
        raise DataError(display_name(vectors), str(error)) from error
    watch.say(f"{len(added):,} target words were added")
    return larger
