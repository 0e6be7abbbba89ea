import json
import shutil

import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.models.fit import mismatch_reason
from phrasetool.pair_classifier.inputs import PretrainedInputs
from phrasetool.pair_classifier.model import PairClassifierModel, fit_of_pairs
from phrasetool.pair_classifier.settings import PairClassifierArchitecture, PairClassifierSettings
from phrasetool.pair_classifier.training import fresh_classifier
from phrasetool.smt.corpus.symbols import read_words, sentence_lengths
from phrasetool.vocabulary import Vocabulary
from tests.parallel_models import FAST, bert_folder, random_parallel_model, toy_lines, toy_pairs

SOURCES, TARGETS = toy_lines(30)


def test_identities_are_those_of_models_saved_before():
    architecture = PairClassifierArchitecture("words", "static", False, 3, "bilstm", 2, 2, 2, "concat", 2, 9)
    arrays = {
        f"inputs.{side}.{table}": np.zeros((2, 2), np.float32)
        for side in ("source", "target") for table in ("words", "parts")
    }  # fmt: skip
    vocabularies = [Vocabulary([b"<unk>", b"a"])] * 4
    assert PairClassifierModel(vocabularies, architecture, arrays, 0.5, {"half": 0.5}).identity == "046bdbae"


def test_words_of_sentences():
    texts, words = read_words(["a  &amp; b", b"b \xff a", "", "a\tb &quot;"])
    assert words == [b"a", b"&", b"b", b"\xff", b'"']
    assert [text.tolist() for text in texts] == [[0, 1, 2], [2, 3, 0], [], [0, 2, 4]]
    assert sentence_lengths(["a b", "", " c "]).tolist() == [2, 0, 1]
    # As Python reads bytes that are not valid UTF-8.
    assert read_words([b"\xff".decode("utf-8", "surrogateescape")])[1] == [b"\xff"]
    # A carriage return does not separate words.
    assert read_words(["a\rb&lt; c"])[1] == [b"a\rb<", b"c"]
    with pytest.raises(TypeError, match="several sentences"):
        read_words("a b")
    assert len(read_words([])[0]) == 0


def test_probabilities_of_pairs_in_one_step_and_in_two():
    model = random_parallel_model()
    result = model.probabilities(SOURCES, TARGETS)
    assert result.shape == (30,)
    assert ((result > 0) & (result < 1)).all()
    assert len(set(result.tolist())) > 20
    sides = [model.encode(lines, side) for lines, side in ((SOURCES, "source"), (TARGETS, "target"))]
    lengths = sentence_lengths(SOURCES)
    assert np.array_equal(model.classify(sides[0], lengths, sides[1], lengths), result)
    logits = model.classifier.pair_logits(sides[0], lengths, sides[1], lengths)
    assert np.allclose(result, 1 / (1 + np.exp(-logits / 1.5)), atol=1e-12)
    assert np.array_equal(model.probabilities([line.decode() for line in SOURCES], TARGETS), result)
    with pytest.raises(ValueError, match="30 sources and 2 targets"):
        model.probabilities(SOURCES, TARGETS[:2])


def test_probabilities_do_not_depend_on_the_other_pairs():
    model = random_parallel_model()
    alone = [model.probabilities([s], [t])[0] for s, t in zip(SOURCES, TARGETS, strict=True)]
    assert np.abs(model.probabilities(SOURCES, TARGETS) - alone).max() < 1e-6


def test_unknown_texts_are_not_parallel():
    model = random_parallel_model()
    result = model.probabilities(["saa", "", "?", "saa"], ["taa", "taa", "taa", "  "])
    assert result[0] > 0
    assert result[1:].tolist() == [0, 0, 0]


def test_the_probability_depends_on_lengths_unless_they_are_disabled():
    for length, counts in (("concat", True), ("add", True), ("shared", True), ("none", False)):
        model = random_parallel_model(length=length)
        vectors = model.encode(["saa sbb"], "source"), model.encode(["taa tbb"], "target")
        result = {float(model.classify(vectors[0], np.array([n]), vectors[1], np.array([2]))[0]) for n in (1, 2, 9)}
        assert (len(result) == 3) == counts


def test_round_trip(tmp_path):
    model = random_parallel_model()
    model.save(tmp_path)
    loaded = PairClassifierModel.load(tmp_path)
    assert loaded.identity == model.identity
    assert loaded.signature == f"model:parallel-{model.identity}|inputs:words|cell:bilstm|length:concat|n:12"
    assert loaded.thresholds == {"half": 0.5, "best": 0.4}
    assert loaded.training == {"a": 1}
    assert np.array_equal(loaded.probabilities(SOURCES, TARGETS), model.probabilities(SOURCES, TARGETS))
    assert random_parallel_model(2).identity != model.identity
    assert model.over_long([b"a " * 9, b"a " * 10]) == 1


@pytest.mark.parametrize(("layer", "tuned"), [("static", False), ("static", True), ("contextual", False),
                                              ("contextual", True)])  # fmt: skip
def test_a_model_contains_its_encoder(tmp_path, layer, tuned):
    folder = bert_folder(tmp_path / "bert")
    settings = PairClassifierSettings.from_options({**FAST, "layer": layer}, encoder=f"hf:{folder}", tuned=tuned)
    fresh = fresh_classifier(toy_pairs(20), settings)
    model = PairClassifierModel(
        [], fresh.architecture, fresh.classifier.arrays(), 1.0, {"half": 0.5, "best": 0.5}, {}, fresh.encoder
    )
    for _ in range(2):
        model.save(tmp_path / "m")
    assert not [name for name in model.arrays if "encoder" in name]
    shutil.rmtree(folder)
    loaded = PairClassifierModel.load(tmp_path / "m")
    assert loaded.identity == model.identity
    assert loaded.signature.split("|")[1] == f"inputs:{layer}-pieces"
    assert np.array_equal(loaded.probabilities(SOURCES, TARGETS), model.probabilities(SOURCES, TARGETS))
    # Other programs can read the saved encoder, too.
    assert PretrainedInputs(tmp_path / "m" / "encoder", layer, False).width == 16
    (tmp_path / "m" / "encoder" / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match="may hold code"):
        PairClassifierModel.load(tmp_path / "m")


def test_damaged_models(tmp_path):
    random_parallel_model().save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())

    def with_config(**changes):
        (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
        PairClassifierModel.load(tmp_path)

    with pytest.raises(ModelError, match="does not describe the architecture"):
        with_config(thresholds=None)
    with pytest.raises(ModelError, match="the temperature is 0"):
        with_config(temperature=0)
    with pytest.raises(ModelError, match="the temperature is inf, expected a finite number above 0"):
        with_config(temperature=float("inf"))
    for thresholds, missing in (({}, "half"), ({"half": 0.5}, "best"), ({"half": float("nan"), "best": 0.4}, "half"),
                                ({"half": 0.5, "best": 1.5}, "best")):  # fmt: skip
        with pytest.raises(ModelError, match=f"the threshold '{missing}' is missing or is not a probability"):
            with_config(thresholds=thresholds)
    for change in ({"units": 8.5}, {"hidden": 1e300}, {"characters": "3"}, {"length_units": 2.0}, {"tuned": "no"}):
        with pytest.raises(ModelError, match=f"{next(iter(change))} is .*, expected"):
            with_config(architecture={**config["architecture"], **change})
    with pytest.raises(ModelError, match="words of the source have shape"):
        with_config(architecture={**config["architecture"], "word_units": 9})
    changed = {**config, "architecture": {**config["architecture"], "units": 7}}
    (tmp_path / "config.json").write_text(json.dumps(changed))
    model = PairClassifierModel.load(tmp_path)
    with pytest.raises(ModelError, match="do not fit the architecture"):
        model.classifier
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "source.parts").unlink()
    with pytest.raises(ModelError, match=r"source\.parts: the file is missing"):
        PairClassifierModel.load(tmp_path)


def test_a_model_of_another_kind(model_folder):
    with pytest.raises(ModelError, match="this needs a classifier of sentence pairs") as caught:
        PairClassifierModel.load(model_folder)
    assert caught.value.remedy == "train a classifier of sentence pairs"


pytest.importorskip("torch")


@pytest.fixture(scope="module")
def saved_classifier(classifier_folder):
    return PairClassifierModel.load(classifier_folder)


def test_right_pairs_are_compatible_and_shifted_pairs_are_not(saved_classifier):
    sources, targets = toy_lines(600, 5)
    fit = fit_of_pairs(saved_classifier, sources, targets)
    assert fit.known == 1
    assert fit.auc > 0.85
    assert mismatch_reason(fit) is None
    shifted = targets[1:] + targets[:1]
    assert "hardly better than chance" in mismatch_reason(fit_of_pairs(saved_classifier, sources, shifted))
    half = [
        shifted_target if i % 2 else target
        for i, (target, shifted_target) in enumerate(zip(targets, shifted, strict=True))
    ]
    assert 0.6 < fit_of_pairs(saved_classifier, sources, half).auc < 0.85
    assert mismatch_reason(fit_of_pairs(saved_classifier, sources, half)) is None


def test_swapped_sides_are_detected(saved_classifier):
    sources, targets = toy_lines(600, 5)
    fit = fit_of_pairs(saved_classifier, targets, sources)
    assert fit.known == 0
    assert fit_of_pairs(saved_classifier, targets, sources, swapped=True).known == 1
    assert "look swapped" in mismatch_reason(
        fit, lambda: fit_of_pairs(saved_classifier, targets, sources, swapped=True)
    )


def test_pairs_with_shared_words_are_compared_only_as_sentences(saved_classifier):
    sources, targets = ([line + b" saa taa" for line in side] for side in toy_lines(400, 5))
    named = fit_of_pairs(saved_classifier, sources, targets, sentences=False)
    assert named.compared <= fit_of_pairs(saved_classifier, sources, targets).compared == 400


def test_a_model_of_pieces_knows_every_word(tmp_path):
    from phrasetool.pair_classifier.inputs import PretrainedInputs
    from phrasetool.pair_classifier.network import SiameseNetwork

    folder = bert_folder(tmp_path / "bert")
    shape = {"inputs": "folder", "layer": "static", "characters": 0, "word_units": 16}
    architecture = random_parallel_model().architecture.__class__(
        **{**vars(random_parallel_model().architecture), **shape}
    )
    network = SiameseNetwork(architecture, 1)
    arrays = {f"network.{name}": value.detach().numpy() for name, value in network.state_dict().items()}
    model = PairClassifierModel(
        [], architecture, arrays, 1.0, {"half": 0.5}, encoder=PretrainedInputs(folder, "static", False)
    )
    fit = fit_of_pairs(model, *toy_lines(400, 5))
    assert (fit.source_known, fit.target_known) == (1, 1)
    assert 0.3 < fit.auc < 0.7
