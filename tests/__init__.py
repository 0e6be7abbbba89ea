"""Tests.  They run the kernels of the sources, never those that were compiled from others before."""

import os

from phrasetool.kernels.jit import MODE, RECORD

if RECORD not in os.environ:
    os.environ.setdefault(MODE, "numba")
