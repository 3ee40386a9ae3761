"""Products of matrices, tile by tile: by a library, or by panels of our own. What writes the text
is wanted by whoever compiles it."""

from tenfold.backends.llvm.target import LLVMTarget
from tenfold.graph.op import PRODUCT

VECTOR_PRODUCT = f"vector_{PRODUCT}"


def product_name(dtype: str, vector: bool) -> str:
    """The name of the function that multiplies matrices of a dtype, or one by a vector: that takes
    little time to compile.

    >>> product_name("f32", vector=True)
    'tn_vector_product_f32'
    """
    return f"tn_{VECTOR_PRODUCT if vector else PRODUCT}_{dtype}"


def by_panels(dtype: str, target: LLVMTarget) -> bool:
    """Whether matrices of a dtype are multiplied by panels, with the registers of AVX-512. Without,
    the library is as fast."""
    return target.masked and dtype in ("f32", "f64")
