"""Matrix products, plain and with what commonly goes before or follows one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case import Array, Case, normal

SIZES = [64, 128, 256, 512, 1024, 2048]
NARROW_SIZES = [64, 256, 512, 1024]  # NumPy takes seconds for more


def product(np: Any, a: Any, b: Any) -> Any:
    return a @ b


def epilogue(np: Any, a: Any, b: Any, c: Any) -> Any:
    return np.maximum(a @ b + c, 0)


def epilogue_torch(torch: Any, a: Any, b: Any, c: Any) -> Any:
    return torch.relu(torch.addmm(c, a, b))


def residual(np: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return np.tanh(a @ b * 0.125 + c) + d


def by_itself(np: Any, a: Any) -> Any:
    return a.T @ a


def transposed(np: Any, a: Any, b: Any) -> Any:
    return a @ b.T


def scaled(np: Any, a: Any, x: Any) -> Any:
    return (1.5 * a) @ x


def attention(np: Any, q: Any, k: Any, v: Any) -> Any:
    scores = q @ np.swapaxes(k, -1, -2) * 0.125
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def attention_torch(torch: Any, q: Any, k: Any, v: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


# The name, shapes, NumPy's way, torch's.
OTHERS: list[tuple[str, tuple[tuple[int, ...], ...], Any, Any]] = [
    ("aᵀ·a, 600×1000", ((600, 1000),), by_itself, by_itself),
    ("a·bᵀ, 512²", ((512, 512), (512, 512)), transposed, transposed),
    ("a vector by 400²", ((400,), (400, 400)), product, product),
    ("a vector by 2000²", ((2000,), (2000, 2000)), product, product),
    ("a scaled matrix by a vector, 1000²", ((1000, 1000), (1000,)), scaled, scaled),
    ("thin, 4096×512 by 8", ((4096, 512), (512, 8)), product, product),
    ("batch of 500, 16²", ((500, 16, 16), (500, 16, 16)), product, product),
    ("batch of 48, 128×64×128", ((48, 128, 64), (48, 64, 128)), product, product),
    ("batch of 8, 512²", ((8, 512, 512), (8, 512, 512)), product, product),
    ("tanh(a·b/8+c)+d, 512²", ((512, 512), (512, 512), (512,), (512, 512)), residual, residual),
    ("attention, 12×256×64", ((1, 12, 256, 64),) * 3, attention, attention_torch),
    ("attention, 12×1024×64", ((1, 12, 1024, 64),) * 3, attention, attention_torch),
]


def integers(n: int) -> Callable[[np.random.Generator], tuple[Array, ...]]:
    return lambda rng: tuple(rng.integers(-99, 99, (n, n), np.int32) for _ in range(2))


def whole_bytes(n: int) -> Callable[[np.random.Generator], tuple[Array, ...]]:
    return lambda rng: tuple(rng.integers(-128, 128, (n, n), np.int8) for _ in range(2))


def widened(np: Any, a: Any, b: Any) -> Any:
    return np.matmul(a.astype(np.int32), b.astype(np.int32))


def widened_torch(torch: Any, a: Any, b: Any) -> Any:
    return torch._int_mm(a, b)


def cases() -> list[Case]:
    found = [
        Case("products", f"{name}, f32", normal(*shapes), array, {"torch": torch})
        for name, shapes, array, torch in OTHERS
    ]
    found.append(Case("products", "512², i32", integers(512), product, {"torch": product}))
    for n in NARROW_SIZES:
        own = {"torch": widened_torch}
        found.append(Case("products", f"{n}², i8 to i32", whole_bytes(n), widened, own))
    for n in SIZES:
        square = ((n, n), (n, n))
        for dtype, short in ((np.float32, "f32"), (np.float64, "f64")):
            inputs = normal(*square, dtype=dtype)
            found.append(Case("products", f"{n}², {short}", inputs, product, {"torch": product}))
            found.append(
                Case("products", f"{n}² by a vector, {short}", normal((n, n), (n,), dtype=dtype),
                     product, {"torch": product})
            )  # fmt: skip
        inputs = normal(*square, (n,))
        own = {"torch": epilogue_torch}
        found.append(Case("products", f"relu(a·b+c), {n}², f32", inputs, epilogue, own))
    return found
