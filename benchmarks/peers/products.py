"""Matrix products, plain and with what commonly follows one."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import Case, normal

SIZES = [64, 128, 256, 512, 1024, 2048]


def product(np: Any, a: Any, b: Any) -> Any:
    return a @ b


def epilogue(np: Any, a: Any, b: Any, c: Any) -> Any:
    return np.maximum(a @ b + c, 0)


def epilogue_torch(torch: Any, a: Any, b: Any, c: Any) -> Any:
    return torch.relu(torch.addmm(c, a, b))


def cases() -> list[Case]:
    found = []
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
