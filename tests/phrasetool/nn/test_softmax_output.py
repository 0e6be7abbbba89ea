import pytest
import torch

from phrasetool.nn.softmax_output import softmax_cross_entropy


@pytest.mark.parametrize("rows", [1, 256, 300])
def test_the_cross_entropy_equals_torchs(rows):
    torch.manual_seed(rows)
    wanted = torch.randint(0, 40, (rows,))
    results = []
    for own in (True, False):
        torch.manual_seed(1)
        hidden, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((rows, 9), (40, 9), (40,)))
        if own:
            loss = softmax_cross_entropy(hidden, weight, bias, wanted)
        else:
            scores = torch.nn.functional.linear(hidden, weight, bias)
            loss = torch.nn.functional.cross_entropy(scores, wanted, reduction="sum")
        (loss / 7).backward()
        results.append((loss.detach(), hidden.grad, weight.grad, bias.grad))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_the_cross_entropy_of_far_apart_scores_is_finite():
    hidden = torch.tensor([[1000.0], [-1000.0]], requires_grad=True)
    loss = softmax_cross_entropy(hidden, torch.tensor([[1.0], [-1.0]]), torch.zeros(2), torch.tensor([0, 0]))
    loss.backward()
    assert loss.item() == 2000
    assert hidden.grad.flatten().tolist() == [0, -2]
