"""What tests of modules that torch trains have in common."""

import pytest


@pytest.fixture(scope="module")
def one_thread():
    """Threads that wait for each other cost more than small sizes are worth."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
