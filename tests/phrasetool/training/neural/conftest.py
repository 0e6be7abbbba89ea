import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Small products are slower on several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
