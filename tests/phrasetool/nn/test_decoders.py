import torch

from phrasetool.autoencoder.network import Autoencoder
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
