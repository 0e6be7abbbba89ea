import numpy as np
import pytest
from numba import njit

from phrasetool.kernels.hashing import fnv_bytes, fnv_bytes_32, home, mix

# Test vectors of FNV-1a, from the page its module names.
VECTORS = [
    (b"", 0xCBF29CE484222325, 0x811C9DC5),
    (b"a", 0xAF63DC4C8601EC8C, 0xE40C292C),
    (b"foobar", 0x85944171F73967E8, 0xBF9CF968),
]


@pytest.mark.parametrize(("text", "long", "short"), VECTORS)
def test_fnv_gives_its_published_values(text, long, short):
    array = np.frombuffer(b"<" + text + b">", np.uint8)
    assert int(fnv_bytes(array, 1, len(array) - 1)) == long
    assert int(fnv_bytes_32(array, 1, len(array) - 1)) == short


@njit
def homes(count, size):
    found = np.empty(count, np.int64)
    for key in range(count):
        found[key] = home(key, size)
    return found


@pytest.mark.parametrize("size", [1, 7, 1000, 4096])
def test_neighbouring_keys_have_homes_all_over_a_table(size):
    found = homes(20 * size, size)
    assert found.min() == 0
    assert found.max() == size - 1
    assert np.bincount(found).max() < 60


@njit
def mixed(first, second):
    return mix(mix(np.uint64(2), first), second)


def test_the_order_of_what_is_mixed_counts():
    seen = {int(mixed(a, b)) for a in range(-20, 20) for b in range(-20, 20)}
    assert len(seen) == 1600
