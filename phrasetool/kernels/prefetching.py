"""Memory that is asked for before it is needed: what a kernel reads here and there costs more than what it computes."""

from __future__ import annotations

from typing import Any

from phrasetool.kernels.intrinsics import Intrinsic

_READ, _KEEP, _DATA = 0, 3, 1


def _declare(_context: Any, array: Any, index: Any) -> Any:
    from numba.core import types
    from numba.core.types.containers import BaseTuple, UniTuple

    indices = tuple(index) if isinstance(index, BaseTuple) else (index,)
    if not isinstance(array, types.Array) or array.layout != "C" or array.ndim != len(indices):
        return None
    if not all(isinstance(kind, types.Integer) for kind in indices):
        return None
    wanted = UniTuple(types.intp, len(indices)) if isinstance(index, BaseTuple) else types.intp
    return types.none(array, wanted), _generate


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
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
prefetch: Any = Intrinsic(__name__, "prefetch", _declare)
