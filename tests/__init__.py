"""Tests.  As for users, kernels come from a library of the same sources, or numba compiles them."""

import os

from phrasetool.kernels.jit import MODE, QUIET

os.environ.setdefault(MODE, QUIET)
