"""Products of matrices, tile by tile: by a library, or by panels of our own. What writes the text
is wanted by whoever compiles it."""

from tenfold.graph.op import PRODUCT

# The functions that carry one out: all matrices by the library, by panels, and one with a vector.
# A function has little text where the library works, and takes little time to compile.
PANEL_PRODUCT, VECTOR_PRODUCT = f"panel_{PRODUCT}", f"vector_{PRODUCT}"
PRODUCTS = PRODUCT, PANEL_PRODUCT, VECTOR_PRODUCT


def product_name(way: str, dtype: str) -> str:
    """The name of the function that multiplies matrices of a dtype in one of these ways.

    >>> product_name(PANEL_PRODUCT, "f32")
    'tn_panel_product_f32'
    """
    return f"tn_{way}_{dtype}"
