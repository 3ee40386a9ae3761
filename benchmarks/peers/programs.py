"""Ten small programs, each as its peer's users write it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from case import Array, Case, normal

# ── a multilayer perceptron


def mlp(np: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    h = np.maximum(x @ w1 + b1, 0)
    h = np.maximum(h @ w2 + b2, 0)
    h = h @ w3 + b3
    e = np.exp(h - h.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def mlp_torch(torch: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    h = torch.relu(torch.addmm(b1, x, w1))
    h = torch.relu(torch.addmm(b2, h, w2))
    return torch.softmax(torch.addmm(b3, h, w3), -1)


def mlp_inputs(rng: np.random.Generator) -> tuple[Array, ...]:
    sizes = [784, 512, 512, 10]
    made: list[Array] = [rng.standard_normal((128, sizes[0]), dtype=np.float32)]
    for a, b in pairwise(sizes):
        made += [rng.standard_normal((a, b), dtype=np.float32) / a**0.5, np.zeros(b, np.float32)]
    return tuple(made)


# ── a block of GPT-2: 768 wide, 12 heads, 128 tokens

WIDE, HEADS, TOKENS = 768, 12, 128


def block(np: Any, x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
    def norm(v: Any) -> Any:
        centred = v - v.mean(axis=-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)

    def heads(v: Any) -> Any:
        return v.reshape(TOKENS, HEADS, WIDE // HEADS).transpose(1, 0, 2)

    q, k, v = (heads(part) for part in np.split(norm(x) @ qkv, 3, axis=-1))
    scores = q @ k.transpose(0, 2, 1) / np.float32((WIDE // HEADS) ** 0.5)
    seen = np.arange(TOKENS)[:, None] >= np.arange(TOKENS)
    scores = np.where(seen, scores, np.float32(-1e9))
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = (e / e.sum(axis=-1, keepdims=True)) @ v
    x = x + mixed.transpose(1, 0, 2).reshape(TOKENS, WIDE) @ out
    h = norm(x) @ up
    h = 0.5 * h * (1 + np.tanh(np.float32(0.7978845608) * (h + np.float32(0.044715) * h * h * h)))
    return x + h @ down


def block_torch(torch: Any, x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
    f = torch.nn.functional
    parts = (f.layer_norm(x, (WIDE,)) @ qkv).chunk(3, -1)
    q, k, v = (p.view(TOKENS, HEADS, WIDE // HEADS).transpose(0, 1)[None] for p in parts)
    mixed = f.scaled_dot_product_attention(q, k, v, is_causal=True)[0]
    x = x + mixed.transpose(0, 1).reshape(TOKENS, WIDE) @ out
    return x + f.gelu(f.layer_norm(x, (WIDE,)) @ up, approximate="tanh") @ down


def block_inputs(rng: np.random.Generator) -> tuple[Array, ...]:
    shapes = [(TOKENS, WIDE), (WIDE, 3 * WIDE), (WIDE, WIDE), (WIDE, 4 * WIDE), (4 * WIDE, WIDE)]
    return tuple(rng.standard_normal(s, dtype=np.float32) / s[0] ** 0.5 for s in shapes)


# ── a block of ResNet: two convolutions of 64 channels, 56×56


def residual(np: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    def convolve(v: Any, w: Any) -> Any:
        padded = np.pad(v, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        return np.tensordot(windows, w, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)

    h = np.maximum(convolve(x, w1) + b1[:, None, None], 0)
    return np.maximum(convolve(h, w2) + b2[:, None, None] + x, 0)


def residual_tenfold(tn: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    h = np.maximum(tn.conv(x, w1, padding=1) + b1[:, None, None], 0)
    return np.maximum(tn.conv(h, w2, padding=1) + b2[:, None, None] + x, 0)


def residual_jax(jax: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    def convolve(v: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(v, w, (1, 1), "SAME")

    h = jax.nn.relu(convolve(x, w1) + b1[:, None, None])
    return jax.nn.relu(convolve(h, w2) + b2[:, None, None] + x)


def residual_torch(torch: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    conv = torch.nn.functional.conv2d
    return torch.relu(conv(torch.relu(conv(x, w1, b1, padding=1)), w2, b2, padding=1) + x)


def residual_inputs(rng: np.random.Generator) -> tuple[Array, ...]:
    x = rng.standard_normal((1, 64, 56, 56), dtype=np.float32)
    kernels = [rng.standard_normal((64, 64, 3, 3), dtype=np.float32) / 24 for _ in range(2)]
    biases = [rng.standard_normal(64, dtype=np.float32) for _ in range(2)]
    return x, kernels[0], biases[0], kernels[1], biases[1]


# ── an LSTM: 128 steps, 8 sequences, 64 inputs, 128 hidden


def lstm_cell(np: Any, state: Any, x: Any, wx: Any, wh: Any, b: Any) -> Any:
    def sigmoid(v: Any) -> Any:
        return 1 / (1 + np.exp(-v))

    h, c = state
    i, f, g, o = np.split(x @ wx + h @ wh + b, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return (h, c), h


def lstm(np: Any, xs: Any, wx: Any, wh: Any, b: Any) -> Any:
    state = np.zeros((8, 128), np.float32), np.zeros((8, 128), np.float32)
    made = []
    for x in xs:
        state, h = lstm_cell(np, state, x, wx, wh, b)
        made.append(h)
    return np.stack(made)


def lstm_tenfold(tn: Any, xs: Any, wx: Any, wh: Any, b: Any) -> Any:
    state = np.zeros((8, 128), np.float32), np.zeros((8, 128), np.float32)
    return tn.scan(lambda s, x: lstm_cell(np, s, x, wx, wh, b), state, xs)[1]


def lstm_jax(jax: Any, xs: Any, wx: Any, wh: Any, b: Any) -> Any:
    state = jax.numpy.zeros((8, 128), "f4"), jax.numpy.zeros((8, 128), "f4")
    return jax.lax.scan(lambda s, x: lstm_cell(jax.numpy, s, x, wx, wh, b), state, xs)[1]


def lstm_torch(torch: Any, xs: Any, wx: Any, wh: Any, b: Any) -> Any:
    start = torch.zeros(1, 8, 128)
    weights = [wx.T.contiguous(), wh.T.contiguous(), b, torch.zeros_like(b)]
    return torch.lstm(xs, (start, start), weights, True, 1, 0.0, False, False, False)[0]


def lstm_inputs(rng: np.random.Generator) -> tuple[Array, ...]:
    shapes = [(128, 8, 64), (64, 512), (128, 512), (512,)]
    scales = [1.0, 8.0, 11.0, 4.0]
    made = (
        rng.standard_normal(s, dtype=np.float32) / k for s, k in zip(shapes, scales, strict=True)
    )
    return tuple(map(np.float32, made))


# ── a step of k-means: 20,000 points, 16 dimensions, 32 centres


def kmeans(np: Any, points: Any, centres: Any) -> Any:
    distances = (centres * centres).sum(axis=1) - 2 * (points @ centres.T)
    nearest = np.argmin(distances, axis=1)
    sums = np.zeros_like(centres)
    np.add.at(sums, nearest, points)
    counts = np.bincount(nearest, minlength=len(centres)).astype(np.float32)
    return sums / np.maximum(counts, 1)[:, None]


def kmeans_jax(jax: Any, points: Any, centres: Any) -> Any:
    jnp = jax.numpy
    distances = (centres * centres).sum(axis=1) - 2 * (points @ centres.T)
    nearest = jnp.argmin(distances, axis=1)
    sums = jnp.zeros_like(centres).at[nearest].add(points)
    counts = jnp.bincount(nearest, length=len(centres)).astype(jnp.float32)
    return sums / jnp.maximum(counts, 1)[:, None]


def kmeans_torch(torch: Any, points: Any, centres: Any) -> Any:
    distances = (centres * centres).sum(1) - 2 * (points @ centres.T)
    nearest = torch.argmin(distances, 1)
    sums = torch.zeros_like(centres).index_add(0, nearest, points)
    counts = torch.bincount(nearest, minlength=len(centres)).float()
    return sums / torch.clamp(counts, min=1)[:, None]


def kmeans_numba(nb: Any, options: dict[str, Any]) -> Any:
    @nb.njit(**(options | {"parallel": False}))
    def run(points: Any, centres: Any) -> Any:
        sums, counts = np.zeros_like(centres), np.zeros(len(centres), np.float32)
        for n in range(len(points)):
            best, nearest = np.float32(np.inf), 0
            for k in range(len(centres)):
                distance = np.float32(0)
                for d in range(points.shape[1]):
                    distance += (points[n, d] - centres[k, d]) ** 2
                if distance < best:
                    best, nearest = distance, k
            sums[nearest] += points[n]
            counts[nearest] += 1
        return sums / np.maximum(counts, 1).reshape(-1, 1)

    return run


# ── Black-Scholes: a million options, f32


def black_scholes(np: Any, erf: Any, price: Any, strike: Any, years: Any) -> Any:
    rate, volatility = np.float32(0.02), np.float32(0.3)
    root = volatility * np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + volatility * volatility / 2) * years) / root
    d2 = d1 - root
    half = np.float32(0.5**0.5)
    cdf1, cdf2 = 0.5 + 0.5 * erf(d1 * half), 0.5 + 0.5 * erf(d2 * half)
    return price * cdf1 - strike * np.exp(-rate * years) * cdf2


def black_scholes_numpy(np: Any, *given: Any) -> Any:
    from scipy.special import erf

    return black_scholes(np, erf, *given)


def black_scholes_jax(jax: Any, *given: Any) -> Any:
    return black_scholes(jax.numpy, jax.scipy.special.erf, *given)


def black_scholes_torch(torch: Any, price: Any, strike: Any, years: Any) -> Any:
    rate, volatility = 0.02, 0.3
    root = volatility * torch.sqrt(years)
    d1 = (torch.log(price / strike) + (rate + volatility * volatility / 2) * years) / root
    d2 = d1 - root
    cdf1, cdf2 = 0.5 + 0.5 * torch.erf(d1 * 0.5**0.5), 0.5 + 0.5 * torch.erf(d2 * 0.5**0.5)
    return price * cdf1 - strike * torch.exp(-rate * years) * cdf2


def black_scholes_numba(nb: Any, options: dict[str, Any]) -> Any:
    import math

    @nb.njit(**options)
    def run(price: Any, strike: Any, years: Any) -> Any:
        out = np.empty_like(price)
        rate, volatility, half = np.float32(0.02), np.float32(0.3), np.float32(0.5**0.5)
        for i in nb.prange(price.size):
            root = volatility * np.sqrt(years[i])
            drift = (rate + volatility * volatility / np.float32(2)) * years[i]
            d1 = (np.log(price[i] / strike[i]) + drift) / root
            d2 = d1 - root
            cdf1 = np.float32(0.5) + np.float32(0.5) * math.erf(d1 * half)
            cdf2 = np.float32(0.5) + np.float32(0.5) * math.erf(d2 * half)
            out[i] = price[i] * cdf1 - strike[i] * np.exp(-rate * years[i]) * cdf2
        return out

    return run


def black_scholes_inputs(rng: np.random.Generator) -> tuple[Array, ...]:
    made = (rng.uniform(low, high, 1_000_000) for low, high in ((10, 50), (10, 50), (0.5, 2)))
    return tuple(m.astype(np.float32) for m in made)


# ── a step of 512 bodies


def bodies(np: Any, place: Any, speed: Any, mass: Any) -> Any:
    apart = place[None, :, :] - place[:, None, :]
    squared = (apart * apart).sum(axis=-1) + 1e-3
    pull = (apart * (mass[None, :] / (squared * np.sqrt(squared)))[:, :, None]).sum(axis=1)
    speed = speed + 0.01 * pull
    return place + 0.01 * speed, speed


def bodies_numba(nb: Any, options: dict[str, Any]) -> Any:
    @nb.njit(**options)
    def run(place: Any, speed: Any, mass: Any) -> Any:
        moved, faster = np.empty_like(place), np.empty_like(speed)
        for i in nb.prange(len(place)):
            px, py, pz = 0.0, 0.0, 0.0
            for j in range(len(place)):
                x, y = place[j, 0] - place[i, 0], place[j, 1] - place[i, 1]
                z = place[j, 2] - place[i, 2]
                squared = x * x + y * y + z * z + 1e-3
                factor = mass[j] / (squared * np.sqrt(squared))
                px, py, pz = px + x * factor, py + y * factor, pz + z * factor
            faster[i, 0] = speed[i, 0] + 0.01 * px
            faster[i, 1] = speed[i, 1] + 0.01 * py
            faster[i, 2] = speed[i, 2] + 0.01 * pz
            for d in range(3):
                moved[i, d] = place[i, d] + 0.01 * faster[i, d]
        return moved, faster

    return run


def bodies_inputs(rng: np.random.Generator) -> tuple[Array, ...]:
    return rng.standard_normal((512, 3)), rng.standard_normal((512, 3)), rng.uniform(0.1, 1, 512)


# ── a stencil: 50 steps of heat on 512×512

STEPS = 50


def heat_step(np: Any, u: Any) -> Any:
    inside = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return inside + np.float32(0.2) * (around - 4 * inside)


def heat(np: Any, u: Any) -> Any:
    u = u.copy()
    for _ in range(STEPS):
        u[1:-1, 1:-1] = heat_step(np, u)
    return u


def heat_jax(jax: Any, u: Any) -> Any:
    def step(_: Any, u: Any) -> Any:
        return u.at[1:-1, 1:-1].set(heat_step(jax.numpy, u))

    return jax.lax.fori_loop(0, STEPS, step, u)


def heat_torch(torch: Any, u: Any) -> Any:
    u = u.clone()
    for _ in range(STEPS):
        inside = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = inside + 0.2 * (around - 4 * inside)
    return u


def heat_numba(nb: Any, options: dict[str, Any]) -> Any:
    @nb.njit(**options)
    def run(u: Any) -> Any:
        old, new = u.copy(), u.copy()
        for _ in range(STEPS):
            for i in nb.prange(1, len(u) - 1):
                for j in range(1, u.shape[1] - 1):
                    around = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
                    change = around - np.float32(4) * old[i, j]
                    new[i, j] = old[i, j] + np.float32(0.2) * change
            old, new = new, old
        return old

    return run


# ── a Kalman filter: 4 states, 2 observed, 1,000 steps


def kalman_step(np: Any, state: Any, z: Any, f: Any, h: Any, q: Any, r: Any) -> Any:
    x, p = state
    x, p = f @ x, f @ p @ f.T + q
    s = h @ p @ h.T + r
    a, b, c, d = s[0, 0], s[0, 1], s[1, 0], s[1, 1]
    inverse = np.stack([np.stack([d, -b]), np.stack([-c, a])]) / (a * d - b * c)
    gain = p @ h.T @ inverse
    x = x + gain @ (z - h @ x)
    return (x, p - gain @ h @ p), x


def kalman(np: Any, zs: Any, f: Any, h: Any, q: Any, r: Any) -> Any:
    state, made = (np.zeros(4), np.eye(4)), []
    for z in zs:
        state, x = kalman_step(np, state, z, f, h, q, r)
        made.append(x)
    return np.stack(made)


def kalman_tenfold(tn: Any, zs: Any, f: Any, h: Any, q: Any, r: Any) -> Any:
    start = np.zeros(4), np.eye(4)
    return tn.scan(lambda s, z: kalman_step(np, s, z, f, h, q, r), start, zs)[1]


def kalman_jax(jax: Any, zs: Any, f: Any, h: Any, q: Any, r: Any) -> Any:
    jnp = jax.numpy
    start = jnp.zeros(4), jnp.eye(4)
    return jax.lax.scan(lambda s, z: kalman_step(jnp, s, z, f, h, q, r), start, zs)[1]


def kalman_torch(torch: Any, zs: Any, f: Any, h: Any, q: Any, r: Any) -> Any:
    state, made = (torch.zeros(4, dtype=f.dtype), torch.eye(4, dtype=f.dtype)), []
    for z in zs:
        state, x = kalman_step(torch, state, z, f, h, q, r)
        made.append(x)
    return torch.stack(made)


def kalman_numba(nb: Any, options: dict[str, Any]) -> Any:
    @nb.njit(**(options | {"parallel": False}))
    def run(zs: Any, f: Any, h: Any, q: Any, r: Any) -> Any:
        x, p, made = np.zeros(4), np.eye(4), np.empty((len(zs), 4))
        for n in range(len(zs)):
            x, p = f @ x, f @ p @ f.T + q
            s = h @ p @ h.T + r
            gain = p @ h.T @ np.linalg.inv(s)
            x = x + gain @ (zs[n] - h @ x)
            p = p - gain @ h @ p
            made[n] = x
        return made

    return run


def kalman_inputs(rng: np.random.Generator) -> tuple[Array, ...]:
    f = np.eye(4) + 0.1 * np.eye(4, k=2)
    h = np.eye(2, 4)
    zs = np.cumsum(rng.standard_normal((1000, 2)), axis=0) + rng.standard_normal((1000, 2))
    return zs, f, h, 0.01 * np.eye(4), np.eye(2)


# ── Mandelbrot's set: 256×256 points, until all have left or after 100 rounds

ROUNDS = 100


def mandelbrot_step(np: Any, x: Any, y: Any, u: Any, v: Any, count: Any) -> Any:
    inside = u * u + v * v <= 4
    u, v = np.where(inside, u * u - v * v + x, u), np.where(inside, 2 * u * v + y, v)
    return u, v, count + inside


def mandelbrot(np: Any, x: Any, y: Any) -> Any:
    u, v, count = np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape, np.int32)
    n = 0
    while n < ROUNDS and (u * u + v * v <= 4).any():
        u, v, count = mandelbrot_step(np, x, y, u, v, count)
        n += 1
    return count


def _mandelbrot_by(loop: Any, np: Any, x: Any, y: Any) -> Any:
    def more(state: Any) -> Any:
        n, u, v, _ = state
        return (n < ROUNDS) & (u * u + v * v <= 4).any()

    def step(state: Any) -> Any:
        n, u, v, count = state
        return (n + 1, *mandelbrot_step(np, x, y, u, v, count))

    start = 0, np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape, np.int32)
    return loop(more, step, start)[3]


def mandelbrot_torch(torch: Any, x: Any, y: Any) -> Any:
    u, v, count = torch.zeros_like(x), torch.zeros_like(x), torch.zeros(x.shape, dtype=torch.int32)
    n = 0
    while n < ROUNDS and bool((u * u + v * v <= 4).any()):
        u, v, count = mandelbrot_step(torch, x, y, u, v, count)
        n += 1
    return count


def mandelbrot_numba(nb: Any, options: dict[str, Any]) -> Any:
    @nb.njit(**options)
    def run(x: Any, y: Any) -> Any:
        count = np.zeros(x.shape, np.int32)
        for i in nb.prange(x.shape[0]):
            for j in range(x.shape[1]):
                u, v, n = np.float32(0), np.float32(0), 0
                while n < ROUNDS and u * u + v * v <= np.float32(4):
                    u, v = u * u - v * v + x[i, j], np.float32(2) * u * v + y[i, j]
                    n += 1
                count[i, j] = n
        return count

    return run


def mandelbrot_inputs(rng: np.random.Generator) -> tuple[Array, ...]:
    x, y = np.meshgrid(np.linspace(-2, 0.5, 256), np.linspace(-1.25, 1.25, 256))
    return x.astype(np.float32), y.astype(np.float32)


def cases() -> list[Case]:
    return [
        Case("programs", "MLP", mlp_inputs, mlp, {"torch": mlp_torch}),
        Case("programs", "transformer block (GPT-2)", block_inputs, block, {"torch": block_torch}),
        Case(
            "programs",
            "convolution block (ResNet)",
            residual_inputs,
            residual,
            {"tenfold": residual_tenfold, "jax": residual_jax, "torch": residual_torch},
        ),
        Case(
            "programs",
            "LSTM, 128 steps",
            lstm_inputs,
            lstm,
            {"tenfold": lstm_tenfold, "jax": lstm_jax, "torch": lstm_torch},
        ),
        Case(
            "programs",
            "k-means step",
            normal((20_000, 16), (32, 16)),
            kmeans,
            {"jax": kmeans_jax, "torch": kmeans_torch, "numba": kmeans_numba},
        ),
        Case(
            "programs",
            "Black-Scholes",
            black_scholes_inputs,
            black_scholes_numpy,
            {
                "jax": black_scholes_jax,
                "torch": black_scholes_torch,
                "numba": black_scholes_numba,
            },
        ),
        Case(
            "programs",
            "n-body step",
            bodies_inputs,
            bodies,
            {"torch": bodies, "numba": bodies_numba},
        ),
        Case(
            "programs",
            "stencil, 50 steps",
            normal((512, 512)),
            heat,
            {"jax": heat_jax, "torch": heat_torch, "numba": heat_numba},
        ),
        Case(
            "programs",
            "Kalman filter, 1,000 steps",
            kalman_inputs,
            kalman,
            {
                "tenfold": kalman_tenfold,
                "jax": kalman_jax,
                "torch": kalman_torch,
                "torch.compile": None,  # a thousand unrolled steps take it minutes
                "numba": kalman_numba,
            },
        ),
        Case(
            "programs",
            "Mandelbrot",
            mandelbrot_inputs,
            mandelbrot,
            {
                "tenfold": lambda tn, x, y: _mandelbrot_by(tn.while_loop, np, x, y),
                "jax": lambda jax, x, y: _mandelbrot_by(jax.lax.while_loop, jax.numpy, x, y),
                "torch": mandelbrot_torch,
                "numba": mandelbrot_numba,
            },
            close=0.02,  # a point on the edge may leave a round earlier
        ),
    ]
