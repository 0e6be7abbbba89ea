"""A matrix product that keeps its sums in registers, which no loop of a kernel makes LLVM do."""

from __future__ import annotations

from typing import Any

from phrasetool.kernels.intrinsics import Intrinsic

# Columns that are summed together: two vector registers a row, eight for four rows, half of what AVX2 has.
LANES = 16
ROWS = 4


def _declare(_context: Any, weights: Any, x: Any, y: Any, begin: Any, end: Any, column: Any) -> Any:
    from numba.core import types

    matrices = [isinstance(kind, types.Array) and kind.ndim == 2 and kind.layout == "C" for kind in (weights, x, y)]
    if not all(matrices) or {weights.dtype, x.dtype, y.dtype} != {types.float32}:
        return None
    return types.none(weights, x, y, types.intp, types.intp, types.intp), _generate


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The instructions of a call."""
    from llvmlite import ir
    from numba.core import cgutils
    from numba.np.arrayobj import make_array

    size, lane = ir.IntType(64), ir.IntType(32)
    vector = ir.VectorType(ir.FloatType(), LANES)
    nothing = ir.Constant(vector, ir.Undefined)
    everywhere = ir.Constant(ir.VectorType(lane, LANES), [0] * LANES)
    multiply_add = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fmuladd.v{LANES}f32"
    )
    *given, begin, end, column = arguments
    weights, x, y = (
        make_array(kind)(context, builder, value) for kind, value in zip(signature.args[:3], given, strict=True)
    )

    def place(array: Any, row: Any, at: Any) -> Any:
        columns = cgutils.unpack_tuple(builder, array.shape, 2)[1]
        return builder.gep(array.data, [builder.add(builder.mul(row, columns), at)])

    def vector_at(array: Any, row: Any) -> Any:
        return builder.bitcast(place(array, row, column), vector.as_pointer())

    sums = [cgutils.alloca_once(builder, vector) for _ in range(ROWS)]
    for row, value in enumerate(sums):
        builder.store(builder.load(vector_at(y, size(row)), align=4), value)
    with cgutils.for_range(builder, end, begin) as loop:
        weight = builder.load(vector_at(weights, loop.index), align=4)
        for row, value in enumerate(sums):
            one = builder.insert_element(nothing, builder.load(place(x, size(row), loop.index)), lane(0))
            same = builder.shuffle_vector(one, nothing, everywhere)
            builder.store(builder.call(multiply_add, [same, weight, builder.load(value)]), value)
    for row, value in enumerate(sums):
        builder.store(builder.load(value), vector_at(y, size(row)), align=4)
    return context.get_dummy_value()


# `add_products(weights, x, y, begin, end, column)`: y[g] gets x[g, begin:end] @ weights[begin:end], in 16 columns.
#
# g is 0..3, the columns of `weights` and `y` are those from `column` on, all are contiguous matrices of float32.
# Products are added one after the other, each fused with its addition where the processor can, so that sums have the
# bits of the plain loop.
add_products: Any = Intrinsic(__name__, "add_products", _declare)
