"""A kernel outside the module `some_kernels`, which a library holds in another part."""

from phrasetool.kernels.jit import exact_kernel


@exact_kernel
def negated(value):
    return -value
