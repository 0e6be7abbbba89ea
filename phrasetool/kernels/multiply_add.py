"""A matrix product that keeps its sums in registers, which no loop of a kernel makes LLVM do."""

from __future__ import annotations

from typing import Any

from phrasetool.kernels.intrinsics import Intrinsic
from phrasetool.kernels.processors import compiled_for

# Columns come in multiples of this many: a vector register of AVX-512, two of AVX2.
LANES = 16
# A multiple of what any processor sums together.
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
    from numba.np.arrayobj import make_array

    arrays = [
        make_array(kind)(context, builder, value) for kind, value in zip(signature.args[:4], arguments[:4], strict=True)
    ]
    _Product(builder, arrays, *arguments[4:]).add_all()
    return context.get_dummy_value()


class _Product:
    """Writes the instructions of one product, for the processor that is compiled for.

    Args:
        builder: takes instructions.
        arrays: weights, bias, x, y.
        begin, end: of the rows of weights.
    """

    def __init__(self, builder: Any, arrays: list[Any], begin: Any, end: Any) -> None:
        from llvmlite import ir
        from numba.core import cgutils

        self._numba, self._builder = cgutils, builder
        self._weights, bias, self._x, self._y = arrays
        self._begin, self._end = begin, end
        self._processor = compiled_for()
        width = self._processor.floats
        self._size, self._lane = ir.IntType(64), ir.IntType(32)
        self._vector = ir.VectorType(ir.FloatType(), width)
        self._nothing = ir.Constant(self._vector, ir.Undefined)
        self._everywhere = ir.Constant(ir.VectorType(self._lane, width), [0] * width)
        self._multiply_add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(self._vector, [self._vector] * 3), f"llvm.fmuladd.v{width}f32"
        )
        # What the sums begin with: the bias, in every row, or what came of the rows of weights before.
        at_first = builder.icmp_signed("==", begin, self._size(0))
        self._sums_before = builder.select(at_first, bias.data, self._y.data)
        self._to_next_row = builder.select(at_first, self._size(0), self._columns(self._y))

    def _columns(self, matrix: Any) -> Any:
        return self._numba.unpack_tuple(self._builder, matrix.shape, 2)[1]

    def _place(self, first: Any, row: Any, to_next_row: Any, column: Any) -> Any:
        return self._builder.gep(first, [self._builder.add(self._builder.mul(row, to_next_row), column)])

    def _place_in(self, matrix: Any, row: Any, column: Any) -> Any:
        return self._place(matrix.data, row, self._columns(matrix), column)

    def _vectors(self, first: Any, count: int) -> list[Any]:
        """Where so many vectors stand, one behind the other."""
        places = self._builder.bitcast(first, self._vector.as_pointer())
        return [self._builder.gep(places, [self._size(i)]) for i in range(count)]

    def _spread(self, value: Any) -> Any:
        """A vector of one number."""
        one = self._builder.insert_element(self._nothing, value, self._lane(0))
        return self._builder.shuffle_vector(one, self._nothing, self._everywhere)

    def _add_block(self, rows: range, column: Any, count: int) -> None:
        """So many vectors of each of these rows, from a column on."""
        build, size = self._builder, self._size
        sums = {row: [self._numba.alloca_once(build, self._vector) for _ in range(count)] for row in rows}
        for row, values in sums.items():
            before = self._place(self._sums_before, size(row), self._to_next_row, column)
            for value, stored in zip(values, self._vectors(before, count), strict=True):
                build.store(build.load(stored, align=4), value)
        with self._numba.for_range(build, self._end, self._begin) as loop:
            here = self._vectors(self._place_in(self._weights, loop.index, column), count)
            weights = [build.load(weight, align=4) for weight in here]
            for row, values in sums.items():
                factor = self._spread(build.load(self._place_in(self._x, size(row), loop.index)))
                for value, weight in zip(values, weights, strict=True):
                    build.store(build.call(self._multiply_add, [factor, weight, build.load(value)]), value)
        for row, values in sums.items():
            for value, stored in zip(
                values, self._vectors(self._place_in(self._y, size(row), column), count), strict=True
            ):
                build.store(build.load(value), stored, align=4)

    def _add_rows(self, column: Any, count: int) -> None:
        together = self._processor.rows
        for first in range(0, ROWS, together):
            self._add_block(range(first, first + together), column, count)

    def add_all(self) -> None:
        """All columns: as many vectors at a time as the processor takes, and then what is left."""
        build, size = self._builder, self._size
        most, width = self._processor.vectors, self._processor.floats
        block = most * width
        columns = self._columns(self._y)
        whole = build.mul(build.sdiv(columns, size(block)), size(block))
        with self._numba.for_range_slice(build, size(0), whole, size(block)) as (column, _):
            self._add_rows(column, most)
        left = build.sub(columns, whole)
        for count in range(LANES // width, most, LANES // width):
            with build.if_then(build.icmp_signed("==", left, size(count * width))):
                self._add_rows(whole, count)


# `add_products(weights, bias, x, y, begin, end)`: y[g] gets x[g, begin:end] @ weights[begin:end] added, or, where
# `begin` is 0, becomes the bias plus that.
#
# g is 0..7, all are contiguous and of float32, the columns of `weights`, `bias` and `y` as many, a multiple of 16.
# Products are added one after the other, each fused with its addition where the processor can, so that sums have the
# bits of the plain loop.
add_products: Any = Intrinsic(__name__, "add_products", _declare)
