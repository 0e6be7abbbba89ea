"""A sum by halves that stays in registers, which no loop of a kernel makes LLVM do."""

from __future__ import annotations

from typing import Any

from phrasetool.kernels.intrinsics import Intrinsic

# The longest row that is summed so; all have a multiple of as many values as the shortest.
SHORTEST, LONGEST = 16, 128
# What stores of 32 bytes have just written is read by loads of as many, or would have to be waited for.
_FLOATS = 8


def _declare(_context: Any, rows: Any, row: Any, size: Any) -> Any:
    from numba.core import types

    if not isinstance(rows, types.Array) or (rows.dtype, rows.ndim, rows.layout) != (types.float32, 2, "C"):
        return None
    return types.float32(rows, types.intp, types.intp), _generate


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The instructions of a call."""
    from llvmlite import ir
    from numba.core import cgutils
    from numba.np.arrayobj import make_array

    number, integer = ir.FloatType(), ir.IntType(64)
    rows = make_array(signature.args[0])(context, builder, arguments[0])
    _, row, size = arguments
    columns = cgutils.unpack_tuple(builder, rows.shape, 2)[1]
    first = builder.bitcast(
        builder.gep(rows.data, [builder.mul(row, columns)]), ir.VectorType(number, _FLOATS).as_pointer()
    )
    result = cgutils.alloca_once(builder, number)

    def lanes(value: Any, begin: int, count: int) -> Any:
        mask = ir.Constant(ir.VectorType(ir.IntType(32), count), list(range(begin, begin + count)))
        return builder.shuffle_vector(value, value, mask)

    for length in range(SHORTEST, LONGEST + 1, SHORTEST):
        with builder.if_then(builder.icmp_signed("==", size, integer(length))):
            parts = [builder.load(builder.gep(first, [integer(i)]), align=4) for i in range(length // _FLOATS)]
            half = 1 << (len(parts) - 1).bit_length()
            while len(parts) > 1:
                half //= 2
                # Where there is nothing in the second half, zero would be added.
                parts = [
                    builder.fadd(part, parts[half + i]) if half + i < len(parts) else part
                    for i, part in enumerate(parts[:half])
                ]
            whole, width = parts[0], _FLOATS
            while width > 2:
                width //= 2
                whole = builder.fadd(lanes(whole, 0, width), lanes(whole, width, width))
            pair = [builder.extract_element(whole, ir.IntType(32)(i)) for i in range(2)]
            builder.store(builder.fadd(*pair), result)
    return builder.load(result)


# `sum_by_halves(rows, row, size)`: the sum of the first `size` values of a row of a contiguous matrix of float32, a
# multiple of 16 up to 128.  As if zeros filled them up to a power of two, the second half is added to the first, value
# by value, then the second half of what there is to its first, and so on.
sum_by_halves: Any = Intrinsic(__name__, "sum_by_halves", _declare)
