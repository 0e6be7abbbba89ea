import pickle

import pytest

from phrasetool.kernels import ahead, building, multiply_add, prefetching
from phrasetool.kernels.intrinsics import Intrinsic


@pytest.mark.parametrize("module", [multiply_add, prefetching])
def test_a_changed_source_makes_a_library_invalid(monkeypatch, module):
    name = module.__name__
    assert name in building._modules_of_kernels()
    for change, valid in ((0, True), (1, False)):
        library = ahead.Library(None, {"kernels": {}, "sources": {name: ahead.checksum(module.__file__) + change}})
        monkeypatch.setattr(ahead, "library_of", lambda _module, found=library: found)
        Intrinsic(name, "of this name", lambda *_: None)
        assert library.valid == valid


def test_numba_caches_it_by_its_name():
    assert pickle.loads(pickle.dumps(multiply_add.add_products)) is multiply_add.add_products
    assert pickle.loads(pickle.dumps(prefetching.prefetch)) is prefetching.prefetch
