"""A kernel of another module than `some_kernels`: in a library it belongs to another part."""

from phrasetool.kernels.jit import exact_kernel


@exact_kernel
def negated(value):
    return -value
