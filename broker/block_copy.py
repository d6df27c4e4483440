"""Copy a block of bytes in a compiled loop by the processor's fastest means, LLVM's memcpy.

Constraints: compiled, nothing is checked: the caller sees to it that both blocks lie inside their arrays and do not
overlap.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray


def copy_block(out: NDArray[np.uint8], position: int, data: NDArray[np.uint8], start: int, size: int) -> None:
    """Copy `size` bytes, none if it is 0, from `data[start]` on to `out[position]` on; a helper of compiled kernels."""
    out[position : position + size] = data[start : start + size]


@functools.cache
def compiled_copy_block() -> Any:
    """Return what a kernel calls in place of `copy_block` once it is compiled."""
    from numba.core import cgutils, types  # Here, as numba takes half a second that most commands need not wait.
    from numba.extending import intrinsic

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, position, data, start, size = arguments
        into = context.make_array(signature.args[0])(context, builder, out).data
        source = context.make_array(signature.args[2])(context, builder, data).data
        memcpy: Any = cgutils.raw_memcpy
        memcpy(builder, builder.gep(into, [position]), builder.gep(source, [start]), size, 1)
        return context.get_dummy_value()

    def copy_block(_typing: Any, out: Any, position: Any, data: Any, start: Any, size: Any) -> Any:
        whole = types.int64
        return types.void(out, whole, data, whole, whole), emit

    return intrinsic(copy_block)
