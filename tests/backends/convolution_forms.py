"""Convolutions of many forms, for the tests of devices' routines."""

from __future__ import annotations

from typing import Any

Shape = tuple[int, ...]

# Shapes of the input and the kernel, strides, dilation, groups.
_FORMS: dict[str, tuple[Shape, Shape, Shape, Shape, int]] = {
    "one axis": ((2, 3, 20), (10, 3, 4), (1,), (1,), 1),
    "one axis, strides and dilation": ((2, 4, 31), (6, 4, 3), (2,), (3,), 1),
    "two axes": ((2, 5, 9, 8), (18, 5, 3, 3), (1, 1), (1, 1), 1),
    "two axes, strides and dilation": ((1, 4, 13, 12), (8, 4, 3, 2), (2, 3), (2, 1), 1),
    "groups": ((2, 6, 8, 9), (15, 2, 3, 3), (1, 1), (1, 1), 3),
    "few out channels": ((2, 8, 9, 7), (4, 8, 3, 3), (1, 2), (1, 1), 1),
    "depthwise": ((2, 7, 9, 8), (7, 1, 3, 3), (2, 2), (1, 1), 7),
    "depthwise, twice as many": ((1, 5, 9, 8), (10, 1, 3, 2), (1, 1), (1, 2), 5),
    "three axes": ((1, 3, 5, 6, 7), (9, 3, 2, 3, 2), (1, 2, 1), (1, 1, 2), 1),
    "three axes in groups": ((2, 4, 4, 5, 6), (12, 2, 2, 2, 3), (1, 1, 1), (1, 1, 1), 2),
    "points": ((3, 12, 4, 8), (20, 12, 1, 1), (1, 1), (1, 1), 1),
}
FORMS = tuple(_FORMS)


def form(name: str) -> tuple[Shape, Shape, dict[str, Any]]:
    """The shapes of the input and the kernel, and the attributes."""
    x, w, strides, dilation, groups = _FORMS[name]
    return x, w, {"strides": strides, "dilation": dilation, "groups": groups}


def _given(rank: int, groups: int = 1, **given: Shape) -> dict[str, Any]:
    ones, none = (1,) * rank, (0,) * rank
    plain = {"strides": ones, "low": none, "high": none, "x_dilation": ones, "dilation": ones}
    return {**plain, **given, "groups": groups}


# Programs of one `conv`: dtype, shapes, attributes.
PROGRAMS: dict[str, tuple[str, Shape, Shape, dict[str, Any]]] = {
    "padded": ("f32", (2, 4, 12, 12), (16, 4, 3, 3), _given(2, low=(1, 1), high=(1, 1))),
    "strides and padding in f16": (
        "f16", (2, 4, 12, 12), (32, 4, 3, 3), _given(2, strides=(2, 1), low=(1, 0), high=(1, 2)),
    ),
    "transposed": (
        "f32", (1, 16, 40), (24, 16, 4), _given(1, low=(3,), high=(3,), x_dilation=(2,)),
    ),
    "transposed, with strides": (
        "f64", (1, 16, 40), (24, 16, 5),
        _given(1, strides=(3,), low=(3,), high=(3,), x_dilation=(2,), dilation=(2,)),
    ),
    "depthwise": (
        "f32", (2, 24, 14, 14), (24, 1, 5, 5),
        _given(2, 24, strides=(2, 2), low=(2, 2), high=(2, 2)),
    ),
    "bytes": ("i8", (2, 6, 12, 12), (12, 3, 3, 3), _given(2, 2)),
}  # fmt: skip
