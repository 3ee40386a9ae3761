"""Products of matrices by a library, tile by tile. What writes the text is wanted by whoever
compiles it."""


def product_name(dtype: str) -> str:
    """The name of the function that multiplies matrices of a dtype.

    >>> product_name("f32")
    'tn_product_f32'
    """
    return f"tn_product_{dtype}"
