"""Products of matrices by cublasLt.

Its bits are not the CPU's, nor those of another version or chip: such a product is judged by the
rule of agreement, and the target says which version it was. The same shapes at the same multiples
of 16 bytes give the same bits in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenfold.backends.cuda.library.cublas import Multiplication
from tenfold.backends.matrices import MatrixProduct
from tenfold.frozen import frozen
from tenfold.types import DTYPES as TYPES

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device

MOST, LEAST = 32 << 20, 1 << 20  # bytes of workspace
_SPLITS = 32  # results that a workspace has room for, where terms are added in parts
_BATCH = 65535  # products of one call
_TERMS = 1 << 17  # of bytes: no sum of fewer overflows
_ALIKE = ("f32", "f64", "f16", "bf16", "c64", "c128")
_ALIGNED = 16  # bytes that algorithms may count on
_WORKSPACE_ALIGNED = 256


@frozen
class CublasProduct:
    """A `LibraryCall`: a product of matrices by this version of cublasLt."""

    product: MatrixProduct
    version: str

    @property
    def made_by(self) -> str:
        return f"cublasLt {self.version}"

    @property
    def captured(self) -> bool:
        return True

    @property
    def workspace(self) -> int:
        """Bytes of workspace: room for partial sums, in proportion to the result, within limits."""
        p = self.product
        size = p.batch * p.m * p.n * TYPES[p.dtype].itemsize
        return min(MOST, max(LEAST, _SPLITS * size))

    @property
    def scratch(self) -> int:
        """The workspace, and room for it to begin at a multiple of 256 bytes: some algorithms are
        refused elsewhere."""
        return self.workspace + _WORKSPACE_ALIGNED

    def call(self, device: Device, stream: Any, addresses: Sequence[int]) -> None:
        left, right, result, workspace = addresses
        odd = any(place % _ALIGNED for place in (left, right, result))
        one = self._multiplication(not odd)
        workspace = -(-workspace // _WORKSPACE_ALIGNED) * _WORKSPACE_ALIGNED
        device.multiplier().multiply(one, stream, left, right, result, workspace)

    def prepare(self, device: Device, aligned: bool) -> int:
        device.multiplier().prepare(self._multiplication(aligned))
        return 0  # a plan is to know its workspace: it is scratch

    def _multiplication(self, aligned: bool) -> Multiplication:
        p = self.product
        dtype = p.dtypes[0]
        size = _ALIGNED if aligned else TYPES[dtype].itemsize
        return Multiplication(dtype, p.batch, p.m, p.n, p.k, p.left, p.right, self.workspace, size)


def has_library(p: MatrixProduct, aligned: bool) -> bool:
    """Whether cublasLt does such a product. Of bytes with signs it does those whose operands have
    terms side by side, in lines that begin at multiples of 16 bytes; and no sum may overflow, of
    which nothing is promised."""
    if p.batch > _BATCH:
        return False
    if p.dtypes == ("i8", "i8", "i32"):
        whole = p.n % _ALIGNED == 0 and p.k % _ALIGNED == 0
        return aligned and whole and p.right and not p.left and p.k < _TERMS
    return len(set(p.dtypes)) == 1 and p.dtype in _ALIKE
