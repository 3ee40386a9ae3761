"""Reductions, scans and sorts along the last axis; softmax along the first, too."""

from __future__ import annotations

from typing import Any

from case import Case, normal

SHAPES = [(1024, 1024), (16384, 64), (64, 65536)]


def softmax(np: Any, x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def layernorm(np: Any, x: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)


def logsumexp(np: Any, x: Any) -> Any:
    top = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=-1)) + top[..., 0]


# The name, NumPy's way, JAX's where it has a function of its own, torch's.
WAYS: list[tuple[str, Any, Any, Any]] = [
    (
        "softmax",
        softmax,
        lambda jax, x: jax.nn.softmax(x, axis=-1),
        lambda torch, x: torch.softmax(x, -1),
    ),
    (
        "layernorm",
        layernorm,
        None,
        lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    ),
    ("variance", lambda np, x: np.var(x, axis=-1), None, lambda t, x: t.var(x, -1, correction=0)),
    ("argmax", lambda np, x: np.argmax(x, axis=-1), None, lambda t, x: t.argmax(x, -1)),
    (
        "logsumexp",
        logsumexp,
        lambda jax, x: jax.nn.logsumexp(x, axis=-1),
        lambda t, x: t.logsumexp(x, -1),
    ),
    ("sum", lambda np, x: np.sum(x, axis=-1), None, lambda t, x: t.sum(x, -1)),
    ("cumsum", lambda np, x: np.cumsum(x, axis=-1), None, lambda t, x: t.cumsum(x, -1)),
    ("sort", lambda np, x: np.sort(x, axis=-1), None, lambda t, x: t.sort(x, -1)[0]),
]


def cases() -> list[Case]:
    found = []
    for name, array, jax, torch in WAYS:
        for rows, columns in SHAPES:
            own = {"torch": torch} | ({"jax": jax} if jax else {})
            title = f"{name} of {rows}×{columns}"
            found.append(Case("rows", title, normal((rows, columns)), array, own))
    first = Case(
        "rows",
        "softmax of 1024×1024, first axis",
        normal((1024, 1024)),
        lambda np, x: softmax(np, x, 0),
        {
            "torch": lambda torch, x: torch.softmax(x, 0),
            "jax": lambda jax, x: jax.nn.softmax(x, axis=0),
        },
    )
    return [*found, first]
