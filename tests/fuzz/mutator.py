"""Inputs made from valid ones by small random changes, reproducible by seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

# Replacements for numbers, and text inserted in unexpected positions.
_NUMBERS = (
    b"0", b"-1", b"1", b"2", b"255", b"256", b"65536", b"2147483647", b"2147483648", b"4294967296",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"1e308", b"1e-320", b"1e400", b"-0.0",
    b"nan", b"-inf", b"0x10", b"1_0", b"00000000000000000000000001", b"0.1" * 9, b".", b"-", b"e", b"1e", b"\xd9\xa3",
)  # fmt: skip
_ODD = (
    b"", b"\x00", b"\xff", b"\xc3", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xc2\xa0", b"\t", b"\r", b"\n", b"\r\n", b" ",
    b"\x0b", b"\x1f\x8b", b"\\", b'"', b"'", b"[", b"]", b"{", b"}", b"%s", b"../", b"~", b"#", b";", b"=", b",", b"|",
)  # fmt: skip
_DIGITS = frozenset(b"0123456789.-")
_LONGEST = 1 << 16


class Mutator:
    """Generator of mutated inputs.

    Args:
        seed: random seed.
        seeds: valid inputs, at least one.
        words: keywords of the format, inserted in random positions.
    """

    def __init__(self, seed: object, seeds: Sequence[bytes], words: Sequence[bytes] = ()) -> None:
        self._rng = random.Random(str(seed))
        self._seeds, self._words = list(seeds), [*words, *_ODD, *_NUMBERS]

    def one(self) -> bytes:
        """Return a valid input with one or more changes; one in fifty remains unchanged."""
        rng = self._rng
        data = rng.choice(self._seeds)
        if rng.random() < 0.02:
            return data
        for _ in range(1 + int(rng.expovariate(0.7))):
            data = self._changed(data)
        return data[:_LONGEST]

    def _changed(self, data: bytes) -> bytes:
        rng, size = self._rng, len(data)
        start = rng.randrange(size + 1)
        end = min(size, start + rng.choice((0, 1, 1, 2, 4, 16, 64)))
        kind = rng.randrange(9)
        if kind == 0 and size:
            start = min(start, size - 1)
            return data[:start] + bytes([data[start] ^ (1 << rng.randrange(8))]) + data[start + 1 :]
        if kind == 1:
            return data[:start] + data[end:]
        if kind == 2:
            return data[:start] + data[start:end] * rng.choice((2, 2, 3, 20, 300)) + data[end:]
        if kind == 3:
            return data[:start]
        if kind == 4:
            other = rng.choice(self._seeds)
            position = rng.randrange(len(other) + 1)
            return data[:start] + other[position : position + rng.choice((4, 16, 1 << 12))] + data[end:]
        if kind == 5:
            return self._other_number(data, start)
        if kind == 6:
            return data[:start] + rng.randbytes(rng.choice((1, 2, 8))) + data[end:]
        return data[:start] + rng.choice(self._words) + data[end if kind == 7 else start :]

    def _other_number(self, data: bytes, near: int) -> bytes:
        """Replace the next number with another one."""
        size = len(data)
        while near < size and data[near] not in _DIGITS:
            near += 1
        end = near
        while end < size and data[end] in _DIGITS:
            end += 1
        return data[:near] + self._rng.choice(_NUMBERS) + data[end:]
