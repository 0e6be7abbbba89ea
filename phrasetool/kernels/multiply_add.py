"""A matrix product that keeps its sums in registers, which no loop of a kernel makes LLVM do."""

from __future__ import annotations

from typing import Any

from phrasetool.kernels.intrinsics import Intrinsic
from phrasetool.kernels.processors import compiled_for

# Columns come in multiples of this many: a vector register of AVX-512, two of AVX2.
LANES = 16
ROWS = 8


def _declare(_context: Any, weights: Any, bias: Any, x: Any, y: Any, begin: Any, end: Any) -> Any:
    from numba.core import types

    for array, dimensions in ((weights, 2), (bias, 1), (x, 2), (y, 2)):
        if not isinstance(array, types.Array) or (array.ndim, array.layout) != (dimensions, "C"):
            return None
        if array.dtype != types.float32:
            return None
    return types.none(weights, bias, x, y, types.intp, types.intp), _generate


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The instructions of a call."""
    from llvmlite import ir
    from numba.core import cgutils
    from numba.np.arrayobj import make_array

    size, lane = ir.IntType(64), ir.IntType(32)
    processor = compiled_for()
    width = processor.floats
    vector = ir.VectorType(ir.FloatType(), width)
    nothing = ir.Constant(vector, ir.Undefined)
    everywhere = ir.Constant(ir.VectorType(lane, width), [0] * width)
    multiply_add = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fmuladd.v{width}f32"
    )
    *given, begin, end = arguments
    weights, bias, x, y = (
        make_array(kind)(context, builder, value) for kind, value in zip(signature.args[:4], given, strict=True)
    )
    columns = cgutils.unpack_tuple(builder, y.shape, 2)[1]
    # What the sums begin with: the bias, in every row, or what came of the rows of weights before.
    at_first = builder.icmp_signed("==", begin, size(0))
    sums_before = builder.select(at_first, bias.data, y.data)
    to_next_row = builder.select(at_first, size(0), columns)

    def place(array: Any, row: Any, at: Any) -> Any:
        columns = cgutils.unpack_tuple(builder, array.shape, 2)[1]
        return builder.gep(array.data, [builder.add(builder.mul(row, columns), at)])

    def vectors(first: Any, count: int) -> list[Any]:
        places = builder.bitcast(first, vector.as_pointer())
        return [builder.gep(places, [size(i)]) for i in range(count)]

    def add_block(rows: range, column: Any, count: int) -> None:
        """So many vectors of each of these rows."""
        sums = {row: [cgutils.alloca_once(builder, vector) for _ in range(count)] for row in rows}
        for row, values in sums.items():
            before = builder.gep(sums_before, [builder.add(builder.mul(size(row), to_next_row), column)])
            for value, stored in zip(values, vectors(before, count), strict=True):
                builder.store(builder.load(stored, align=4), value)
        with cgutils.for_range(builder, end, begin) as loop:
            here = [builder.load(weight, align=4) for weight in vectors(place(weights, loop.index, column), count)]
            for row, values in sums.items():
                one = builder.insert_element(nothing, builder.load(place(x, size(row), loop.index)), lane(0))
                same = builder.shuffle_vector(one, nothing, everywhere)
                for value, weight in zip(values, here, strict=True):
                    builder.store(builder.call(multiply_add, [same, weight, builder.load(value)]), value)
        for row, values in sums.items():
            for value, stored in zip(values, vectors(place(y, size(row), column), count), strict=True):
                builder.store(builder.load(value), stored, align=4)

    def add_rows(column: Any, count: int) -> None:
        for first in range(0, ROWS, processor.rows):
            add_block(range(first, first + processor.rows), column, count)

    most = processor.vectors
    block = most * width
    whole = builder.mul(builder.sdiv(columns, size(block)), size(block))
    with cgutils.for_range_slice(builder, size(0), whole, size(block)) as (column, _):
        add_rows(column, most)
    if block > LANES:
        left = builder.sub(columns, whole)
        for count in range(LANES // width, most, LANES // width):
            with builder.if_then(builder.icmp_signed("==", left, size(count * width))):
                add_rows(whole, count)
    return context.get_dummy_value()


# `add_products(weights, bias, x, y, begin, end)`: y[g] gets x[g, begin:end] @ weights[begin:end] added, or, where
# `begin` is 0, becomes the bias plus that.
#
# g is 0..7, all are contiguous and of float32, the columns of `weights`, `bias` and `y` as many, a multiple of 16.
# Products are added one after the other, each fused with its addition where the processor can, so that sums have the
# bits of the plain loop.
add_products: Any = Intrinsic(__name__, "add_products", _declare)
