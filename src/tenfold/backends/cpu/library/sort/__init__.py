"""Stable sorts of lines, as LLVM IR. What writes it is wanted by whoever compiles one."""


def sort_name(name: str, dtype: str) -> str:
    """The name of the function that sorts elements of a dtype.

    >>> sort_name("argsort", "f32")
    'tn_argsort_f32'
    """
    return f"tn_{name}_{dtype}"
