"""Models loaded from files, compared with a naive decoder and with a run of Moses."""

import gzip
import os
import random
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.engine.arpa import load_language_model
from moses_compat.engine.decoder_tables import InputPhrases, used_pairs
from moses_compat.engine.model import MosesModel, check_sides
from moses_compat.engine.n_best import n_best_lines
from phrasetool.errors import DataError
from phrasetool.phrases import Phrases
from phrasetool.smt.decoder.forced import REACHED, ForcedDecoder, ForcedOptions, count_pairs
from phrasetool.smt.decoder.translator import Translator
from tests import naive_decoder as naive
from tests.decoder_models import (
    LanguageModels,
    naive_steps,
    random_arpa,
    random_model,
    random_sentence,
    search_options,
    write_model,
)
from tests.moses_compat.experiments.watching import RecordingWatch
from tests.n_best_lists import read_n_best
from tests.scored_words import score_sentence


@pytest.fixture(scope="module")
def language_models(tmp_path_factory):
    return LanguageModels(tmp_path_factory.mktemp("language-models"), 3)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2]))
def test_a_model_from_files_finds_the_naive_best(language_models, workspace, seed, threads):
    rng = random.Random(seed)
    number = rng.randrange(3)
    sentences = [random_sentence(rng, rng.randint(0, 4)) for _ in range(3)]
    model = random_model(rng, sentences[0] + sentences[1], language_models.kenlm[number])
    # In a file, two entries of a pair cannot have different reordering scores.
    model.entries = list({(entry.source, entry.target): entry for entry in model.entries}.values())
    ini = write_model(model, workspace / "model", language_models.paths[number])
    result = MosesModel.read(str(ini))
    text = b"".join(b" ".join(sentence) + b"\n" for sentence in sentences)
    translator, source = result.load(text, threads)
    used = {tuple(s[i:j]) for s in sentences for i in range(len(s)) for j in range(i + 1, len(s) + 1)}
    filtered = replace(model, entries=[entry for entry in model.entries if entry.source in used])
    for sentence, translation in zip(
        sentences, translator.translate_all(source.sentences, search_options(model)), strict=True
    ):
        best = max(naive.score(model, d) for d in naive.derivations(model, sentence))
        assert float(translation.steps.scores[0]) == pytest.approx(best, rel=1e-5, abs=2e-4)
        steps = naive_steps(filtered, translator, sentence, translation)
        values = naive.features(model, steps)
        expected = [value for name in translator.features.sizes for value in values[name]]
        assert translation.features[0].tolist() == pytest.approx(expected, rel=1e-5, abs=2e-4)


def test_the_files_may_be_replaced(language_models, tmp_path):
    rng = random.Random(3)
    sentence = random_sentence(rng, 4)
    model = random_model(rng, sentence, language_models.kenlm[0])
    ini = write_model(model, tmp_path / "model", language_models.paths[0])
    replacement = tmp_path / "other"
    replacement.write_bytes(b"")
    translator, _ = MosesModel.read(str(ini), str(replacement)).load(b" ".join(sentence))
    assert translator.table.copies.all()


def test_the_language_model_may_be_damaged(language_models, tmp_path):
    rng = random.Random(3)
    sentence = random_sentence(rng, 4)
    arpa = tmp_path / "cut.arpa"
    whole = random_arpa(rng)
    ini = write_model(random_model(rng, sentence, language_models.kenlm[0]), tmp_path / "model", arpa)
    lines = whole.split(b"\n")
    for kept, message in [(len(lines) // 2, "truncated"), (len(lines) - 4, "truncated"), (0, "not an ARPA file")]:
        arpa.write_bytes(b"".join(line + b"\n" for line in lines[:kept]))
        with pytest.raises(DataError, match=rf"cut.arpa:\d+: .*{message}"):
            MosesModel.read(str(ini)).load(b" ".join(sentence))


def test_a_table_is_read_by_its_whole_name(language_models, tmp_path):
    """As in Moses, only the path of a reordering table may lack its suffix."""
    rng = random.Random(3)
    sentence = random_sentence(rng, 4)
    ini = write_model(random_model(rng, sentence, language_models.kenlm[0]), tmp_path / "m", language_models.paths[0])
    (name,) = re.findall(r"TranslationModel0 .*path=(\S+)", ini.read_text())
    ini.write_text(ini.read_text().replace(f"path={name}", "path=table"))
    os.replace(tmp_path / "m" / name, tmp_path / "m" / "table.gz")
    with pytest.raises(DataError, match=r"m/table does not exist, but \S*/m/table.gz does; .*: write path=table.gz"):
        MosesModel.read(str(ini))


def test_sides_of_different_length():
    source = InputPhrases.of(b"a\nb\n")
    check_sides(len(source.sentences), 2, "x", "y")
    with pytest.raises(DataError, match="y: has 3 lines, but x has 2"):
        check_sides(len(source.sentences), 3, "x", "y")


# The reference run: the first sentences of a test set, and of the training set for forced decoding.
SENTENCES = 100


@dataclass
class MosesRun:
    """A model, its translator, test sentences, training pairs, and Moses' n-best lists of the test sentences."""

    model: MosesModel
    translator: Translator
    sentences: Phrases
    training: Phrases
    references: list
    lines: list
    candidates: list


@pytest.fixture(scope="module")
def moses_run(reference):
    test = (reference.parent / "test_2016_flickr.de").read_bytes().split(b"\n")[:SENTENCES]
    sides = [gzip.decompress((reference.parent / f"train.{side}.gz").read_bytes()) for side in ("de", "en")]
    training, references = (side.split(b"\n")[:SENTENCES] for side in sides)
    model = MosesModel.read(str(reference / "moses.ini"))
    translator, source = model.load(b"\n".join([*test, *training]) + b"\n")
    path = reference / "test_2016_flickr.first300.nbest50.gz"
    lines = gzip.decompress(path.read_bytes()).split(b"\n")[:-1]
    return MosesRun(
        model,
        translator,
        source.sentences.select(np.arange(SENTENCES)),
        source.sentences.select(np.arange(SENTENCES, 2 * SENTENCES)),
        references,
        [line for line in lines if int(line.split(b" ", 1)[0]) < SENTENCES],
        [candidate for candidate in read_n_best(str(path)) if candidate.sentence < SENTENCES],
    )


@pytest.mark.requires_reference
def test_every_derivation_of_moses_has_the_features_that_moses_says(moses_run):
    translator, table, candidates = moses_run.translator, moses_run.translator.table, moses_run.candidates
    entries = {}
    for entry, number in enumerate(table.entry_sources.tolist()):
        first, last = table.index.offsets[number : number + 2]
        words = table.source_symbols.join(table.index.words[first:last])
        # A pair that occurs twice in the table would be ambiguous.
        key = words, tuple(table.targets[entry].tolist())
        assert key not in entries
        entries[key] = entry
    steps, offsets = [], [0]
    for candidate in candidates:
        sentence = moses_run.sentences[candidate.sentence]
        for first, last, begin, end in candidate.spans:
            words = table.source_symbols.join(sentence[first : last + 1])
            target = tuple(map(table.target_symbols.id, candidate.words[begin : end + 1]))
            steps.append((entries[words, target], first, last))
        offsets.append(len(steps))
    rows = np.array(steps, np.int32).T
    values = translator.score_steps(np.array(offsets), rows)
    assert len(candidates) > 3600
    for feature, part in translator.features.slices.items():
        named = np.array([candidate.features[translator.features.name(feature)] for candidate in candidates])
        assert np.abs(values[:, part] - named).max() < 1e-3, feature
    copies = np.add.reduceat(table.copies[rows[0]], offsets[:-1], dtype=int)
    totals = values @ translator.weights - 100 * copies
    assert np.abs(totals - [candidate.total for candidate in candidates]).max() < 1e-3


@pytest.mark.requires_reference
def test_the_n_best_lists_of_moses_are_found(moses_run, reference):
    model, translator = moses_run.model, moses_run.translator
    moses_candidates, first_lines = {}, {}
    for line, candidate in zip(moses_run.lines, moses_run.candidates, strict=True):
        moses_candidates.setdefault(candidate.sentence, []).append(candidate)
        first_lines.setdefault(candidate.sentence, line)
    outputs = (reference / "test_2016_flickr.moses.en").read_bytes().split(b"\n")
    same_lines = same_lists = 0
    for number, translation in enumerate(translator.translate_all(moses_run.sentences, model.search, 50)):
        assert translator.text(translation) == outputs[number].strip()
        totals = np.array([candidate.total for candidate in moses_candidates[number]])
        assert float(translation.steps.scores[0]) == pytest.approx(totals[0], abs=1e-3)
        line = n_best_lines(translator, number, translation, model.listed, True, True).split(b"\n")[0]
        same_lines += line == first_lines[number]
        # Numbers are left out: their last digits may differ, because Moses adds in single precision.
        assert without_numbers(line) == without_numbers(first_lines[number])
        # The rest of the list has the same length, no lower scores, and the same order unless scores are nearly equal.
        assert len(translation) == len(totals)
        assert (translation.steps.scores >= totals - 1e-3).all()
        words = [translator.text(translation, d).split() for d in range(len(translation))]
        same_lists += words == [candidate.words for candidate in moses_candidates[number]]
    assert same_lines > 0.8 * SENTENCES
    assert same_lists > 0.95 * SENTENCES


def without_numbers(line):
    fields = line.split(b" ||| ")
    return [*fields[:2], [token for token in fields[2].split() if token.endswith(b"=")], *fields[4:]]


@pytest.mark.requires_reference
def test_cube_pruning_finds_nearly_the_same(moses_run):
    moses_totals = {}
    for candidate in moses_run.candidates:
        moses_totals.setdefault(candidate.sentence, candidate.total)
    options = replace(moses_run.model.search, algorithm="cube", stack_size=400, pop_limit=400)
    result = moses_run.translator.translate_all(moses_run.sentences, options)
    scores = [float(translation.steps.scores[0]) for translation in result]
    difference = np.array(scores) - [moses_totals[i] for i in range(SENTENCES)]
    assert np.abs(difference).mean() < 0.02
    assert (np.abs(difference) < 1e-3).mean() > 0.8
    # Rarely, cube pruning finds a better translation, which Moses' stacks had pruned.
    assert (difference > 1e-3).mean() < 0.1


@pytest.mark.requires_reference
def test_the_pairs_of_forced_decoding_are_pairs_that_moses_used(moses_run, reference):
    table, model = moses_run.translator.table, moses_run.model
    references = Phrases.from_lists(
        [[table.target_symbols.id(word) for word in line.split()] for line in moses_run.references]
    )
    options = ForcedOptions(distortion_limit=model.search.distortion_limit)
    decoder = ForcedDecoder(table, model.features, model.weights, options)
    result = list(decoder.decode_all(moses_run.training, references))
    # Moses reached 26,272 of 29,000 sentences.
    assert sum(derivation.outcome == REACHED for derivation in result) > 0.9 * SENTENCES
    pairs = {line.rsplit(b" ||| ", 1)[0] for line in used_pairs(table, count_pairs(result, table)).split(b"\n")[:-1]}
    lines = gzip.decompress((reference / "forced-pairs.gz").read_bytes()).split(b"\n")[:-1]
    moses_pairs = {line.rsplit(b" ||| ", 1)[0] for line in lines}
    assert len(pairs & moses_pairs) > 0.95 * len(pairs)


@pytest.mark.requires_reference
def test_the_language_model_of_the_words_at_hand_is_the_whole_one(moses_run):
    words = [b"a", b"man", b"in", b"a", b"blue", b"shirt", b".", b"anstarrt"]
    whole, restricted = load_language_model(moses_run.model.language_models[0]), moses_run.translator.language_model
    assert score_sentence(restricted, words) == pytest.approx(score_sentence(whole, words), abs=1e-5)
    assert len(restricted.words) < len(whole.words)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["A [1]", "[X][X] [2]", "B"], "2 entries have a target word in brackets, such as [1], which Moses reads as a"),
        (["B", "[]"], "1 entry has a target word in brackets, such as [], which Moses reads as a label or a non-term"),
        (["[ A ]", "a[1]", "[1]b", "[", "&#91;1&#93;"], None),
    ],
)
def test_words_in_brackets_are_reported_once(language_models, tmp_path, targets, message):
    model = random_model(random.Random(1), [b"a"])
    model.entries = [
        naive.Entry((b"a",), tuple(target.encode().split()), (-1.0,) * model.tables[0], counts=(1, 1, 1))
        for target in targets
    ]
    model.kind = ""
    model.weights.pop("LexicalReordering", None)
    loaded = MosesModel.read(str(write_model(model, tmp_path / "model", language_models.paths[0])))
    translator, _ = loaded.load(b"a\n")
    watch = RecordingWatch()
    loaded.report_reading(translator.table.targets, translator.table.target_symbols, watch)
    assert len(watch.warned) == (message is not None)
    assert all(f"{loaded.shown_tables}: {message}" in warning for warning in watch.warned)
