"""What dtype strings mean: NumPy's meaning wherever NumPy's names are read, ours in graphs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import UnknownDType
from tenfold.types import DTYPES, SHORT, as_dtype, parse_type, short_name

NAMES = [
    *("".join(p) for p in product("biufcdeqQlL?", ("", "1", "2", "4", "8", "16"))),
    *(f"{order}{kind}{size}" for order in "<>=|" for kind in "iuf" for size in "1248"),
    *("int", "float", "complex", "bool", "half", "single", "double", "intp", "uintp", "byte"),
    *(dtype.name for dtype in SHORT),
    *DTYPES,
]


def test_strings_mean_what_numpy_says() -> None:
    for name in NAMES:
        try:
            wanted = np.dtype(name).newbyteorder("=")
        except TypeError:
            wanted = None
        if wanted in SHORT:
            assert as_dtype(name) == wanted, name
        else:
            with pytest.raises(UnknownDType):
                as_dtype(name)


@pytest.mark.parametrize("name", ["i8", "u8", "c16", "f2", "i1", "?", ">f4", "bfloat16"])
def test_every_way_to_name_a_dtype(name: str) -> None:
    x, wanted = np.array([300.75, 2.0]), np.dtype(name).newbyteorder("=")
    ways = [
        lambda v: v.astype(name),
        lambda v: np.astype(v, name),
        lambda v: np.zeros_like(v, dtype=name),
        lambda v: np.full_like(v, 1, dtype=name),
        lambda v: np.linspace(v[1], 3, 4, dtype=name),
        lambda v: tn.zeros(3, name) + tn.ones(3, name),
        lambda v: tn.asarray([1, 0], dtype=name),
        lambda v: tn.full(2, 1, name),
        lambda v: tn.astype(v, name),
        lambda v: tn.spec(2, name) and tn.empty(2, name),
    ]
    for way in ways:
        assert tn.jit(way)(x).dtype == wanted
        assert np.asarray(way(tn.asarray(x))).dtype == wanted
    assert tn.spec(2, name).dtype == wanted


def test_the_values_are_numpys() -> None:
    assert tn.jit(lambda v: v.astype("i8"))(np.array([300.7])).tolist() == [300]
    assert tn.iinfo("i8").bits == 64
    assert tn.jit(lambda v: v.view("u8"))(np.array([1.0])).dtype == np.uint64


def test_a_short_name_is_refused_with_the_name_to_write() -> None:
    with pytest.raises(UnknownDType, match="write 'float32'"):
        tn.zeros(3, "f32")
    with pytest.raises(UnknownDType, match="float128"):
        tn.zeros(3, "f16")
    with pytest.raises(TypeError):
        tn.zeros(3, [1, 2])


def test_graph_text_has_names_of_its_own() -> None:
    assert [parse_type(short).dtype for short in DTYPES] == list(SHORT)
    assert short_name("i8") == short_name(np.dtype("i1")) == "i8"
    with pytest.raises(ValueError, match="names no dtype of a graph"):
        short_name("int8")


def test_a_dtype_is_one_object():
    for dtype in SHORT:
        for one in (dtype, dtype.newbyteorder("="), dtype.newbyteorder(">"), dtype.type):
            assert as_dtype(one) is DTYPES[SHORT[dtype]]
