import torch

from phrasetool.autoencoder.network import Autoencoder
from phrasetool.nn.decoders import lstm_step
from phrasetool.phrases import Phrases
from tests.phrasetool.autoencoder.small_autoencoders import (
    architecture,
    arrays_of,
    every_architecture,
    some_texts,
)


@every_architecture
def test_one_step_after_another_equals_all_at_once(name):
    arrays, (text,) = arrays_of(name), some_texts(1, 30, 4)
    module = Autoencoder(architecture(name), arrays)
    vector = module.encode(Phrases.from_lists([text])).detach()
    start = module._parts(vector)[1]
    inputs = torch.randn(len(text), 6)
    whole = module.decoder.all_steps(inputs, start, [(1, len(text))])
    state = module.decoder.begin(start, len(text))
    steps = [module.decoder.step(state, inputs[t : t + 1]) for t in range(len(text))]
    torch.testing.assert_close(torch.cat(steps), whole, atol=1e-5, rtol=1e-5)


def test_steps_of_an_lstm_and_their_gradients_equal_those_of_a_sequence():
    torch.manual_seed(4)
    lstm = torch.nn.LSTM(5, 6, 2, batch_first=True)
    inputs, (states, cells) = torch.randn(3, 4, 5), torch.randn(2, 2, 3, 6)
    gradients = []
    for step_by_step in (False, True):
        lstm.zero_grad()
        if step_by_step:
            layers = [*zip(states, cells, strict=True)]
            outputs = []
            for row in inputs.unbind(1):
                layers = lstm_step(lstm, row, *zip(*layers, strict=True))
                outputs.append(layers[-1][0])
            result = torch.stack(outputs, 1)
        else:
            result = expected = lstm(inputs, (states, cells))[0]
        result.square().sum().backward()
        gradients.append({name: value.grad.clone() for name, value in lstm.named_parameters()})
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(gradients[1], gradients[0])
