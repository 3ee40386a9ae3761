"""What rules and attributes refuse, and in which words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tenfold.errors import GraphError, ShapeError, TenfoldError, TypeMismatch, ValueProblem
from tenfold.ops import TABLE
from tenfold.types import TensorType, as_dtype

FRAME = {"axes": (0,), "at": 0, "mode": "raise"}
MATRIX = {"lhs_contract": (1,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": ()}
WINDOW = {"low": (0,), "high": (0,), "interior": (0,)}

# op, types, attributes, error, message
REFUSED: list[tuple[str, str, dict[str, Any], type[TenfoldError], str]] = [
    (
        "add",
        "f32[3] f32[4]",
        {},
        ShapeError,
        "add: f32[3] and f32[4] do not broadcast (axis 0: 3 against 4)",
    ),
    (
        "add",
        "f32[2,3] f32[2]",
        {},
        ShapeError,
        "add: f32[2,3] and f32[2] do not broadcast (axis 1: 3 against 2)",
    ),
    ("add", "f32[3] f64[3]", {}, TypeMismatch, "add: f32[3] and f64[3] have different dtypes"),
    ("sub", "bool bool", {}, TypeMismatch, "sub: bool is not a dtype it takes (i, u, f, c)"),
    ("max", "c64 c64", {}, TypeMismatch, "max: c64 is not a dtype it takes (b, i, u, f)"),
    ("complex", "f16 f16", {}, TypeMismatch, "complex: f16 is not a dtype it takes (f32, f64)"),
    ("add", "f32", {}, GraphError, "add: 1 inputs, 2 needed"),
    (
        "select",
        "f32 f32 f32",
        {},
        TypeMismatch,
        "select: the condition: f32 is not a dtype it takes (b)",
    ),
    (
        "select",
        "bool[2] f32[3] f32",
        {},
        ShapeError,
        "select: bool[2], f32[3] and f32 do not broadcast (axis 0: 2 against 3)",
    ),
    (
        "bitcast",
        "f32",
        {"dtype": "f64"},
        TypeMismatch,
        "bitcast: f32 to f64: elements of 4 bytes are not elements of 8",
    ),
    (
        "bitcast",
        "bool",
        {"dtype": "i8"},
        TypeMismatch,
        "bitcast: bool is not a dtype it takes (i, u, f)",
    ),
    (
        "constant",
        "",
        {"data": b"abc", "type": "f32"},
        ShapeError,
        "constant: f32 takes 4 bytes, 3 given",
    ),
    (
        "constant",
        "",
        {"data": b"\2", "type": "bool"},
        ValueProblem,
        "constant: a byte of a bool is 0 or 1",
    ),
    ("iota", "", {"dtype": "i32", "shape": (), "axis": 0}, ShapeError, "iota: i32 has no axis 0"),
    (
        "iota",
        "",
        {"dtype": "bool", "shape": (2,), "axis": 0},
        TypeMismatch,
        "iota: bool is not a dtype it takes (i, u, f)",
    ),
    (
        "reduce_sum",
        "bool[3]",
        {"axes": (0,)},
        TypeMismatch,
        "reduce_sum: bool is not a dtype it takes (i, u, f, c)",
    ),
    ("reduce_sum", "f32[3]", {"axes": (1,)}, ShapeError, "reduce_sum: f32[3] has no axis 1"),
    ("reduce_sum", "f32[3]", {"axes": (-1,)}, ShapeError, "attribute axes: -1 is negative"),
    (
        "reduce_sum",
        "f32[3]",
        {"axes": (0, 0)},
        ShapeError,
        "attribute axes: (0, 0) names an axis twice",
    ),
    ("reduce_sum", "f32[3]", {"axes": 0}, TypeMismatch, "attribute axes: 0 is no row of integers"),
    ("reduce_sum", "f32[3]", {"axes": (0.5,)}, TypeMismatch, "attribute axes: 0.5 is no integer"),
    ("reduce_sum", "f32[3]", {}, GraphError, "reduce_sum: attributes [] given, ['axes'] needed"),
    (
        "reduce_sum",
        "f32[3]",
        {"axis": 0},
        GraphError,
        "reduce_sum: the attribute 'axes' is missing",
    ),
    (
        "reduce_max",
        "f32[0]",
        {"axes": (0,)},
        ShapeError,
        "reduce_max: axis 0 of f32[0] is empty, and reduce_max of nothing is nothing",
    ),
    ("argmax", "f32", {"axis": 0}, ShapeError, "argmax: f32 has no axis 0"),
    (
        "reshape",
        "f32[6]",
        {"shape": (4,)},
        ShapeError,
        "reshape: f32[6] has 6 elements, shape (4,) has 4",
    ),
    ("reshape", "f32[6]", {"shape": (-1,)}, ShapeError, "attribute shape: -1 is negative"),
    (
        "transpose",
        "f32[2,3]",
        {"axes": (1,)},
        ShapeError,
        "transpose: f32[2,3] has 2 axes and axes has 1 entries",
    ),
    ("transpose", "f32[2,3]", {"axes": (0, 2)}, ShapeError, "transpose: f32[2,3] has no axis 2"),
    (
        "broadcast",
        "f32[2]",
        {"shape": (3,)},
        ShapeError,
        "broadcast: f32[2] does not broadcast to (3,)",
    ),
    (
        "broadcast",
        "f32[2,2]",
        {"shape": (2,)},
        ShapeError,
        "broadcast: f32[2,2] does not broadcast to (2,)",
    ),
    (
        "pad",
        "f32[2] f32",
        {**WINDOW, "low": (-3,)},
        ShapeError,
        "pad: axis 0 of f32[2] would have the extent -1",
    ),
    ("pad", "f32[2] f64", WINDOW, TypeMismatch, "pad: f32[2] and f64 have different dtypes"),
    ("pad", "f32[2] f32[1]", WINDOW, ShapeError, "pad: the value is f32[1], not a scalar"),
    (
        "slice",
        "f32[4]",
        {"starts": (0,), "stops": (5,), "steps": (1,)},
        ShapeError,
        "slice: 0:5:1 of axis 0 of f32[4]",
    ),
    (
        "slice",
        "f32[4]",
        {"starts": (0,), "stops": (4,), "steps": (0,)},
        ShapeError,
        "slice: 0:4:0 of axis 0 of f32[4]",
    ),
    (
        "slice",
        "f32[4]",
        {"starts": (), "stops": (), "steps": ()},
        ShapeError,
        "slice: f32[4] has 1 axes and starts has 0 entries",
    ),
    ("concatenate", "", {"axis": 0}, ShapeError, "concatenate: no arrays"),
    (
        "concatenate",
        "f32[2,3] f32[2,2]",
        {"axis": 0},
        ShapeError,
        "concatenate: f32[2,3] and f32[2,2] do not fit along axis 0",
    ),
    (
        "concatenate",
        "f32[2] i32[2]",
        {"axis": 0},
        TypeMismatch,
        "concatenate: f32[2] and i32[2] have different dtypes",
    ),
    (
        "gather",
        "f32[3] f32[2]",
        FRAME,
        TypeMismatch,
        "gather: an index: f32 is not a dtype it takes (i, u)",
    ),
    ("gather", "f32[3]", FRAME, ShapeError, "gather: 0 index arrays for axes (0,) of f32[3]"),
    (
        "gather",
        "f32[3] i64[2]",
        {**FRAME, "at": 1},
        ShapeError,
        "gather: at=1, and f32[3] has 0 axes besides (0,)",
    ),
    (
        "gather",
        "f32[3] i64",
        {**FRAME, "mode": "fill"},
        ValueProblem,
        "attribute mode: 'fill' is none of raise, clip, wrap",
    ),
    (
        "scatter",
        "f32[3] f32[3] i64[2]",
        {**FRAME, "kind": "add"},
        ShapeError,
        "scatter: the updates are f32[3], f32[2] needed",
    ),
    (
        "scatter",
        "c64[3] c64[2] i64[2]",
        {**FRAME, "kind": "max"},
        TypeMismatch,
        "scatter max: c64 is not a dtype it takes (b, i, u, f)",
    ),
    (
        "dynamic_slice",
        "f32[3] i64",
        {"sizes": (4,)},
        ShapeError,
        "dynamic_slice: 4 elements of axis 0 of f32[3]",
    ),
    (
        "dynamic_slice",
        "f32[3] f32",
        {"sizes": (1,)},
        TypeMismatch,
        "dynamic_slice: start 0: f32 is not a dtype it takes (i, u)",
    ),
    (
        "dynamic_update",
        "f32[3] f32[2]",
        {},
        ShapeError,
        "dynamic_update: f32[3] has 1 axes and starts has 0 entries",
    ),
    (
        "contract",
        "f32[2,3] f32[4,2]",
        MATRIX,
        ShapeError,
        "contract: f32[2,3] and f32[4,2] do not meet "
        "(axis 1 of the left has 3, axis 0 of the right has 4)",
    ),
    (
        "contract",
        "f32[2,3] f32[3,2]",
        {**MATRIX, "lhs_batch": (0,)},
        ShapeError,
        "contract: 1 axes to batch on the left, 0 on the right",
    ),
    (
        "contract",
        "f32[2,3] f32[3,2]",
        {**MATRIX, "lhs_batch": (1,), "rhs_batch": (0,)},
        ShapeError,
        "contract: axes (1, 1) name one twice",
    ),
    ("sort", "f32[3]", {"axis": 1}, ShapeError, "sort: f32[3] has no axis 1"),
    ("lu", "f32[3]", {}, ShapeError, "lu: f32[3] is no matrix"),
    (
        "svd",
        "f16[3,3]",
        {"full_matrices": True, "compute_uv": True},
        TypeMismatch,
        "svd: f16 is not a dtype it takes (f32, f64, c)",
    ),
    (
        "svd",
        "f32[3,3]",
        {"full_matrices": 1, "compute_uv": True},
        TypeMismatch,
        "attribute full_matrices: 1 is neither True nor False",
    ),
    (
        "qr",
        "f32[3,3]",
        {"mode": "raw"},
        ValueProblem,
        "attribute mode: 'raw' is none of reduced, complete, r",
    ),
    (
        "print",
        "f32",
        {"label": 3, "structure": "*"},
        TypeMismatch,
        "attribute label: 3 is no string",
    ),
    (
        "constant",
        "",
        {"data": "abc", "type": "f32"},
        TypeMismatch,
        "attribute data: 'abc' is no bytes",
    ),
]


@pytest.mark.parametrize(
    ("name", "types", "attributes", "error", "message"),
    REFUSED,
    ids=[f"{row[0]}-{n}" for n, row in enumerate(REFUSED)],
)
def test_refused(
    name: str,
    types: str,
    attributes: dict[str, Any],
    error: type[TenfoldError],
    message: str,
    infer: Callable[..., Any],
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}") as caught:
        infer(name, *types.split(), **attributes)
    assert caught.value.message == message
    assert caught.value.fix or error is GraphError, "the error does not say what to do"


def test_attributes_have_one_form() -> None:
    cast, total, made = (TABLE[n].normalise for n in ("cast", "reduce_sum", "constant"))
    assert cast({"dtype": np.float32}) == cast({"dtype": "f32"}) == (("dtype", "f32"),)
    assert total({"axes": [np.int64(2), 0]}) == (("axes", (0, 2)),)
    assert type(total({"axes": [np.int64(2)]})[0][1][0]) is int
    one = made({"data": bytearray(4), "type": TensorType(as_dtype("float32"), ())})
    assert one == (("data", bytes(4)), ("type", "f32"))
    assert type(one[0][1]) is bytes
    flags = TABLE["svd"].normalise({"full_matrices": np.True_, "compute_uv": False})
    assert flags == (("full_matrices", True), ("compute_uv", False))
    assert type(flags[0][1]) is bool
