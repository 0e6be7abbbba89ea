"""Scanning, comparing and copying of bytes in arrays, for use inside other kernels; bounds are not checked."""

from __future__ import annotations

import numpy as np

from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import ByteArray

TAB = np.uint8(9)
LF = np.uint8(10)
CR = np.uint8(13)
SPACE = np.uint8(32)
PIPE = np.uint8(ord("|"))
ZERO = np.uint8(ord("0"))
NINE = np.uint8(ord("9"))
PLUS = np.uint8(ord("+"))
MINUS = np.uint8(ord("-"))
POINT = np.uint8(ord("."))


@exact_kernel
def is_blank(c: int) -> bool:
    """Return whether a byte is a blank, which separates tokens."""
    return c == SPACE or c == TAB


@borrowing_kernel
def skip_blanks(text: ByteArray, i: int, end: int) -> int:
    """Return the index of the first byte of text[i:end] that is not a blank, or `end`."""
    while i < end and is_blank(text[i]):
        i += 1
    return i


@borrowing_kernel
def token_end(text: ByteArray, i: int, end: int) -> int:
    """Return the index of the first blank of text[i:end], or `end`."""
    while i < end and not is_blank(text[i]):
        i += 1
    return i


@inner_kernel
def common_prefix(a: ByteArray, first: int, b: ByteArray, second: int, size: int) -> int:
    """Return the length of the common prefix of a[first:first + size] and b[second:second + size]."""
    k = 0
    while k < size and a[first + k] == b[second + k]:
        k += 1
    return k


@inner_kernel
def same_bytes(a: ByteArray, first: int, b: ByteArray, second: int, size: int) -> bool:
    """Return whether a[first:first + size] and b[second:second + size] are equal."""
    return common_prefix(a, first, b, second, size) == size


@inner_kernel
def copy_bytes(text: ByteArray, start: int, end: int, out: ByteArray, place: int) -> int:
    """Copy text[start:end] to out[place:]; return the index after the copied bytes."""
    for k in range(start, end):
        out[place] = text[k]
        place += 1
    return place
