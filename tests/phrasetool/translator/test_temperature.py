import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from phrasetool.translator.network import padded_targets
from phrasetool.translator.temperature import fitted_temperature
from phrasetool.translator.training import NeuralTrainer
from tests.phrasetool.translator.small_pairs import prepared


@pytest.mark.parametrize("epochs", [1, 6])
def test_no_temperature_of_a_grid_is_more_likely(epochs):
    pairs, development, table, settings = prepared(200, 60, epochs=epochs)
    trainer = NeuralTrainer(pairs, development, table, settings)
    list(trainer.run())
    module = trainer.kept()
    found = fitted_temperature(module, development, 1)
    with torch.no_grad():
        targets = padded_targets(development.targets, module.end)
        predicted = functional.normalize(module.predict(module.encode(development.sources), targets), dim=1)
        cosines = (predicted @ module.targets.T).double()
        wanted = targets[targets >= 0]

    def likelihood(temperature):
        return float(torch.log_softmax(cosines / temperature, 1).gather(1, wanted[:, None]).mean())

    grid = [math.exp(x) for x in np.linspace(-7, 2, 200)]
    assert likelihood(found) >= max(map(likelihood, grid)) - 1e-4
    assert found == pytest.approx(max(grid, key=likelihood), rel=0.06)


def test_a_softmax_has_one():
    pairs, development, table, settings = prepared(40, 10, loss="cross-entropy-tied", epochs=1)
    module = NeuralTrainer(pairs, development, table, settings).kept()
    assert fitted_temperature(module, development, 1) == 1.0
