"""Products of matrices, tile by tile: by a library, or by panels of our own. What writes the text
is wanted by whoever compiles it."""

from tenfold.graph.op import PRODUCT

# The functions that carry one out: all matrices by the library, by panels, by pairs of terms, by
# panels of narrow integers, and one with a vector. A function has little text where the library
# works, and takes little time to compile.
PANEL_PRODUCT, PAIR_PRODUCT, NARROW_PRODUCT, VECTOR_PRODUCT = (
    f"{way}_{PRODUCT}" for way in ("panel", "pair", "narrow", "vector")
)
PRODUCTS = PRODUCT, PANEL_PRODUCT, PAIR_PRODUCT, NARROW_PRODUCT, VECTOR_PRODUCT


def product_name(way: str, *dtypes: str) -> str:
    """The name of the function that multiplies matrices in one of these ways, of one dtype or of
    two.

    >>> product_name(PANEL_PRODUCT, "f32"), product_name(NARROW_PRODUCT, "i8", "u8")
    ('tn_panel_product_f32', 'tn_narrow_product_i8xu8')
    """
    return f"tn_{way}_{'x'.join(dtypes)}"
