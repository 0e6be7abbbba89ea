import pickle

import pytest

from phrasetool.kernels import ahead, building, multiply_add, prefetching
from phrasetool.kernels.intrinsics import Intrinsic


@pytest.mark.parametrize("module", [multiply_add, prefetching])
def test_its_module_is_watched(monkeypatch, module):
    name = module.__name__
    assert name in building._modules_of_kernels()
    monkeypatch.setattr(ahead, "_watched", {})
    Intrinsic(name, "of this name", lambda *_: None)
    assert ahead._watched == {name: ahead.checksum(module.__file__)}


def test_numba_caches_it_by_its_name():
    assert pickle.loads(pickle.dumps(multiply_add.add_products)) is multiply_add.add_products
    assert pickle.loads(pickle.dumps(prefetching.prefetch)) is prefetching.prefetch
