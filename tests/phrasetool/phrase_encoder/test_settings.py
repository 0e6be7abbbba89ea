import json

import pytest

from phrasetool.phrase_encoder.settings import TrainingSettings, batch_size_for
from tests.variants import for_each


def test_layers_of_mean_max_can_be_trained():
    chosen = TrainingSettings.for_loss("in-batch", "mean-max")
    assert (chosen.encoder_options["layers"], chosen.learning_rate, chosen.vectors) == ("fixed", 0.01, "centred")
    chosen = TrainingSettings.for_loss("in-batch", "mean-max", layers="trained", learning_rate=0.001)
    assert (chosen.encoder_options["layers"], chosen.learning_rate) == ("trained", 0.001)
    with pytest.raises(ValueError, match="layers is 'frozen', expected one of fixed, trained"):
        TrainingSettings.for_loss("in-batch", "mean-max", layers="frozen")


@pytest.mark.parametrize(
    ("encoder", "dimension", "optimizer", "share"),
    [
        ("rae", 20, "adam", 1), ("rae", 50, "adam", 1), ("rae", 80, "adam", 50 / 80), ("rae", 80, "sgd", 1),
        ("mean-max", 512, "adam", 1), ("mean-max", 1024, "adam", 0.5),
    ],
)  # fmt: skip
def test_above_the_default_dimension_matrices_take_smaller_steps_of_adam(encoder, dimension, optimizer, share):
    chosen = TrainingSettings.for_loss("in-batch", encoder, dimension=dimension, optimizer=optimizer)
    assert chosen.matrix_steps == share


@for_each(
    ("name", "value"),
    [
        ("loss", "hinge"),
        ("encoder", "bag"),
        ("alpha", 1.5),
        ("batch_size", 0),
        ("learning_rate", -1),
        ("schedule", "cosine"),
        ("dimension", "50"),
        ("iterations", 2.5),
        ("alpha", float("nan")),
        ("seed", -1),
    ],
)
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        TrainingSettings(**{name: value})


def test_the_papers_values_are_the_defaults_of_max_margin():
    s = TrainingSettings.for_loss("max-margin")
    assert (s.alpha, s.learning_rate, s.iterations, s.batch_size) == (0.15, 0.01, 25, 1)
    assert s.loss_options == {"margin": 1.0, "corruption": "frequency"}
    assert (s.lambda_words, s.lambda_rec, s.lambda_sem, s.optimizer) == (1e-2, 1e-3, 1e-3, "sgd")


@for_each(
    ("changes", "message"),
    [
        ({"margin": 1.0}, "margin belongs to the losses max-margin, sampled, .*; the loss in-batch takes temperature"),
        ({"heads": 2}, "heads belongs to the encoder mean-max; .*the encoder rae takes no options"),
        ({"width": 2}, "unknown setting width"),
        ({"temperature": "hot"}, "temperature is 'hot', expected a finite number"),
        ({"encoder": "mean-max", "dimension": 31}, "even dimension"),
        ({"encoder": "mean-max", "dimension": 32, "heads": 3}, "3 heads cannot share 16 .*heads can be 1, 2, 4, 8, 16"),
        ({"encoder": "mean-max", "alpha": 0.1}, "alpha is 0.1, expected 0: the encoder mean-max does not reconstruct"),
        ({"encoder": "mean-max", "pretrain_iterations": 1}, "pretrain_iterations is 1, expected 0"),
        ({"freeze_encoders": True, "alpha": 0.1}, "frozen encoders do not learn to reconstruct"),
        ({"freeze_encoders": True, "lambda_words": 0.1}, "lambda_words is 0.1, expected 0: frozen encoders are not"),
        ({"freeze_encoders": True, "lambda_rec": 0.1}, "lambda_rec is 0.1, expected 0: frozen encoders are not"),
        ({"encoder": "mean", "lambda_words": 0.1}, "expected 0: the word vectors of the encoder mean are not trained"),
        ({"encoder": "mean", "lambda_rec": 0.1}, "expected 0: the layers of the encoder mean are not trained"),
        ({"encoder": "mean", "freeze_encoders": True}, "expected False: the encoder mean trains only the transform"),
        ({"encoder": "mean-max", "lambda_rec": 0.1}, "expected 0: the layers of the encoder mean-max are not trained"),
    ],
)
def test_combinations_that_do_not_work_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainingSettings.for_loss("in-batch", **changes)


def test_precedence_of_defaults_and_given_settings():
    s = TrainingSettings.for_loss("max-margin", "mean-max", heads=2, margin=0.5, batch_size=8)
    assert (s.optimizer, s.schedule, s.alpha, s.pretrain_iterations) == ("adam", "constant", 0.0, 0)
    assert (s.dimension, s.batch_size, s.lambda_words) == (512, 8, 0.01)
    assert s.loss_options == {"margin": 0.5, "corruption": "frequency"}
    encoder_options = {"word_units": 128, "heads": 2, "feed_forward": 0, "dropout": 0.0, "layers": "fixed"}
    assert s.encoder_options == encoder_options
    frozen = TrainingSettings.for_loss("max-margin", freeze_encoders=True)
    assert (frozen.alpha, frozen.lambda_words, frozen.lambda_rec, frozen.lambda_sem) == (0, 0, 0, 1e-3)


def test_penalties_of_parameters_that_are_not_trained_are_zero():
    """The loss has penalties of all parameters."""
    fixed, mean = (TrainingSettings.for_loss("max-margin", encoder) for encoder in ("mean-max", "mean"))
    assert (fixed.lambda_words, fixed.lambda_rec, fixed.lambda_sem) == (1e-2, 0, 1e-3)
    assert (mean.lambda_words, mean.lambda_rec, mean.lambda_sem) == (0, 0, 1e-3)
    trained = TrainingSettings.for_loss("max-margin", "mean-max", layers="trained")
    assert trained.lambda_rec == 1e-3
    assert TrainingSettings.for_loss("in-batch", "mean-max", layers="trained", lambda_rec=0.1).lambda_rec == 0.1


def test_settings_are_one_flat_table():
    table = TrainingSettings.for_loss("sampled", "mean-max", negatives=3).as_dict()
    assert (table["loss"], table["encoder"], table["negatives"], table["heads"]) == ("sampled", "mean-max", 3, 4)
    assert not {"loss_options", "encoder_options"} & set(table)
    json.dumps(table)


def test_batches_of_small_sets_are_small():
    assert [batch_size_for(n) for n in (10, 2000, 3000, 8000, 16384, 10**6)] == [32, 32, 64, 128, 512, 512]


def test_the_batch_size_is_one_only_with_compiled_updates():
    assert TrainingSettings.for_loss("max-margin").batch_size == 1
    assert TrainingSettings.for_loss("max-margin", optimizer="adam").batch_size == 64
    assert TrainingSettings.for_loss("max-margin", count_exponent=0.5).batch_size == 64
    assert TrainingSettings.for_loss("max-margin", count_exponent=0.5, batch_size=8).batch_size == 8


def test_the_default_loss_weights_pairs_by_their_counts_and_others_do_not():
    assert TrainingSettings.for_loss("in-batch").count_exponent == 0.7
    assert TrainingSettings.for_loss("cosine").count_exponent == 0
