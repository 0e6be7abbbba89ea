import threading

import pytest

from phrasetool.torch_threads import one_torch_thread

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def two_threads():
    torch.set_num_threads(2)


def test_one_thread_and_then_what_there_was():
    with one_torch_thread():
        assert torch.get_num_threads() == 1
        with one_torch_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_also_when_work_fails():
    with pytest.raises(KeyError), one_torch_thread():
        raise KeyError
    assert torch.get_num_threads() == 2


def test_blocks_may_end_in_any_order():
    """As generators do that are given up."""
    first, second = one_torch_thread(), one_torch_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert torch.get_num_threads() == 1
    second.__exit__(None, None, None)
    assert torch.get_num_threads() == 2


def test_threads_within_take_nothing_from_each_other():
    seen = []

    def work():
        with one_torch_thread():
            seen.append(torch.get_num_threads())

    with one_torch_thread():
        for _ in range(3):
            worker = threading.Thread(target=work)
            worker.start()
            worker.join()
            seen.append(torch.get_num_threads())
    assert seen == [1] * 6
    assert torch.get_num_threads() == 2
