"""Products of matrices, tile by tile: by a library, or by panels of our own. What writes the text
is wanted by whoever compiles it."""

from tenfold.backends.llvm.target import LLVMTarget


def product_name(dtype: str) -> str:
    """The name of the function that multiplies matrices of a dtype.

    >>> product_name("f32")
    'tn_product_f32'
    """
    return f"tn_product_{dtype}"


def by_panels(dtype: str, target: LLVMTarget) -> bool:
    """Whether matrices of a dtype are multiplied by panels, with the registers of AVX-512. Without,
    the library is as fast."""
    return target.masked and dtype in ("f32", "f64")
