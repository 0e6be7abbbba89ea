import pytest
import torch

from phrasetool.translator.cores import AttentionCore, RecurrentCore
from tests.phrasetool.translator.small_translators import small


@pytest.mark.parametrize("kind", ["lstm", "gru", "softmax", "transformer"])
def test_one_step_after_another_is_all_steps_at_once(kind):
    module = small(kind)
    core, a = module.core, module.architecture
    assert isinstance(core, RecurrentCore if a.recurrent else AttentionCore)
    torch.manual_seed(1)
    width = a.word_units + a.units * a.input_feeding
    inputs = torch.randn(3, 4, width)
    start = torch.randn(3, a.units * (2 if a.cell == "lstm" else 1) if a.recurrent else 0)
    with torch.no_grad():
        expected = core.all_steps(inputs, start)
        state = core.begin(start, 4)
        for step in range(4):
            torch.testing.assert_close(core.step(state, inputs[:, step]), expected[:, step])
        assert state.done == 4
        # A later word changes nothing before it.
        inputs[:, 3] += 1
        assert torch.equal(core.all_steps(inputs, start)[:, :3], expected[:, :3])


def test_every_layer_starts_from_the_encoder():
    core = RecurrentCore("lstm", 2, 3, 2)
    start = torch.arange(12.0).view(2, 6)
    output, cell = core.begin(start, 1).parts
    for layer in range(2):
        assert output[:, layer].tolist() == start[:, :3].tolist()
        assert cell[:, layer].tolist() == start[:, 3:].tolist()
