import pytest

from phrasetool.models.fit import finding
from phrasetool.pair_classifier.model import ParallelModel
from phrasetool.pair_classifier.model_fit import fit_of_pairs
from tests.parallel_models import bert_folder, random_parallel_model, toy_lines

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def model(classifier_folder):
    return ParallelModel.load(classifier_folder)


def test_right_pairs_fit_and_exchanged_ones_do_not(model):
    sources, targets = toy_lines(600, 5)
    fit = fit_of_pairs(model, sources, targets)
    assert fit.known == 1
    assert fit.auc > 0.85
    assert finding(fit) is None
    others = targets[1:] + targets[:1]
    assert "hardly better than chance" in finding(fit_of_pairs(model, sources, others))
    half = [other if i % 2 else target for i, (target, other) in enumerate(zip(targets, others, strict=True))]
    assert 0.6 < fit_of_pairs(model, sources, half).auc < 0.85
    assert finding(fit_of_pairs(model, sources, half)) is None


def test_swapped_sides_are_told(model):
    sources, targets = toy_lines(600, 5)
    fit = fit_of_pairs(model, targets, sources)
    assert fit.known == 0
    assert fit_of_pairs(model, targets, sources, swapped=True).known == 1
    assert "look swapped" in finding(fit, lambda: fit_of_pairs(model, targets, sources, swapped=True))


def test_words_on_both_sides_count_in_sentences_alone(model):
    sources, targets = ([line + b" saa taa" for line in side] for side in toy_lines(400, 5))
    named = fit_of_pairs(model, sources, targets, sentences=False)
    assert named.compared <= fit_of_pairs(model, sources, targets).compared == 400


def test_a_model_of_pieces_knows_every_word(tmp_path):
    from phrasetool.pair_classifier.folder_inputs import FolderInputs
    from phrasetool.pair_classifier.network import SiameseNetwork

    folder = bert_folder(tmp_path / "bert")
    shape = {"inputs": "folder", "layer": "static", "characters": 0, "word_units": 16}
    architecture = random_parallel_model().architecture.__class__(
        **{**vars(random_parallel_model().architecture), **shape}
    )
    network = SiameseNetwork(architecture, 1)
    arrays = {f"network.{name}": value.detach().numpy() for name, value in network.state_dict().items()}
    made = ParallelModel([], architecture, arrays, 1.0, {"half": 0.5}, encoder=FolderInputs(folder, "static", False))
    fit = fit_of_pairs(made, *toy_lines(400, 5))
    assert (fit.source_known, fit.target_known) == (1, 1)
    assert 0.3 < fit.auc < 0.7
