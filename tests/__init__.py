"""Tests.  They run kernels as users do: from a library whose sources are those here, or compiled by numba."""

import os

from phrasetool.kernels.jit import MODE, QUIET

os.environ.setdefault(MODE, QUIET)
