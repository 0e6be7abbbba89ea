"""Functions of kernels whose instructions are written out, because numba has none or no loop makes LLVM choose them.

`prefetch` requests memory before it is needed: scattered reads cost more than the computation.  `sum_by_halves` and
`add_products` keep their sums in registers.  Numba, and the code written for it, is only imported when a kernel that
names one of these functions is compiled.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from phrasetool.kernels import jit
from phrasetool.kernels.processors import compiled_for

_READ, _KEEP, _DATA = 0, 3, 1
# The longest row that is summed so; all have a multiple of as many values as the shortest.
SHORTEST_SUM, LONGEST_SUM = 16, 128
# Values stored 32 bytes at a time are loaded 32 bytes at a time; other loads would wait for the stores.
_FLOATS = 8
# Columns come in multiples of this many: a vector register of AVX-512, two of AVX2.
LANES = 16
# A multiple of what any processor sums together.
ROWS = 8


class Intrinsic:
    """A function of kernels whose instructions are written out.

    Args:
        module, name: where it stands, and as what.
        declare: gives its signature and what writes its instructions for the types of arguments, as
            `numba.extending.intrinsic` wants it; no signature for types that it does not take.
    """

    def __init__(self, module: str, name: str, declare: Callable[..., Any]) -> None:
        # By both, numba finds it again when it reads the globals of what it cached.
        self.__module__, self._name = module, name
        self._declare = declare
        # Kernels that were compiled ahead of time hold the instructions that are written in that module.
        jit.watch(module, str(sys.modules[module].__file__))

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """Type by which numba identifies the function."""
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        declared = intrinsic(self._declare)
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(declared)

    def __reduce__(self) -> str:
        return self._name


def _declare_prefetch(_context: Any, array: Any, index: Any) -> Any:
    from numba.core import types
    from numba.core.types.containers import BaseTuple, UniTuple

    indices = tuple(index) if isinstance(index, BaseTuple) else (index,)
    if not isinstance(array, types.Array) or array.layout != "C" or array.ndim != len(indices):
        return None
    if not all(isinstance(kind, types.Integer) for kind in indices):
        return None
    index_type = UniTuple(types.intp, len(indices)) if isinstance(index, BaseTuple) else types.intp
    return types.none(array, index_type), _write_prefetch


def _write_prefetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The instructions of a call."""
    from llvmlite import ir
    from numba.core import cgutils
    from numba.core.types.containers import BaseTuple
    from numba.np.arrayobj import make_array

    kind = signature.args[0]
    array = make_array(kind)(context, builder, arguments[0])
    indices = [arguments[1]]
    if isinstance(signature.args[1], BaseTuple):
        indices = cgutils.unpack_tuple(builder, arguments[1], kind.ndim)
    shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
    strides = cgutils.unpack_tuple(builder, array.strides, kind.ndim)
    place = cgutils.get_item_pointer2(context, builder, array.data, shape, strides, "C", indices)
    flag, byte = ir.IntType(32), ir.IntType(8).as_pointer()
    fetch = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag]), "llvm.prefetch.p0"
    )
    builder.call(fetch, [builder.bitcast(place, byte), flag(_READ), flag(_KEEP), flag(_DATA)])
    return context.get_dummy_value()


# `prefetch(array, index)`: ask for the line of memory that holds an element of a contiguous array; `index` is an
# integer, or a tuple of as many as the array has dimensions.  Nothing is read, so that an index may be beyond the end.
prefetch: Any = Intrinsic(__name__, "prefetch", _declare_prefetch)


def _declare_sum(_context: Any, rows: Any, row: Any, size: Any) -> Any:
    from numba.core import types

    if not isinstance(rows, types.Array) or (rows.dtype, rows.ndim, rows.layout) != (types.float32, 2, "C"):
        return None
    return types.float32(rows, types.intp, types.intp), _write_sum


def _write_sum(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
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

    for length in range(SHORTEST_SUM, LONGEST_SUM + 1, SHORTEST_SUM):
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
sum_by_halves: Any = Intrinsic(__name__, "sum_by_halves", _declare_sum)


def _declare_product(_context: Any, weights: Any, bias: Any, x: Any, y: Any, begin: Any, end: Any) -> Any:
    from numba.core import types

    for array, dimensions in ((weights, 2), (bias, 1), (x, 2), (y, 2)):
        if not isinstance(array, types.Array) or (array.ndim, array.layout) != (dimensions, "C"):
            return None
        if array.dtype != types.float32:
            return None
    return types.none(weights, bias, x, y, types.intp, types.intp), _write_product


def _write_product(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
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
        # Start of the sums: the bias, in every row, or the sums over the rows of weights before.
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
add_products: Any = Intrinsic(__name__, "add_products", _declare_product)
