"""GPT-2 sized decoding with a growing cache, beside the same code in NumPy and under jax.jit.

    python benchmarks/decode.py [--tokens 100] [--jax-tokens 20] [--layers 12] [--rounds 1]
                                [--save FILE]

12 layers of 12 heads, 768 wide, 50257 words, random float32 weights: nothing is downloaded. One
function does a step: the new tokens and the cache of keys and values go in, the logits and the
longer cache (`np.concatenate`) come out. The first token comes of a prompt of 16 and an empty
cache, each later one of the token before it, the likeliest: no two calls have one shape. The
weights are an argument, as JAX has it; its are arrays of its own.

Each system runs in a process of its own, in turn, with empty caches. Imports of packages are not
counted; what Tenfold loads of itself at its first call is, in the first token. With more than one
round the least of each token's times is taken. `processor` is the median time of all
threads: above the clock's where products use several, below it where the machine is busy. NumPy's
tokens are what the others' are compared with, and its logits, relative to the largest, as long as
tokens agree. NumPy runs twice, since on a busy machine its threads wait for one another: as it is,
and with one thread (`numpy-1`); the others are set beside the faster of the two. JAX compiles for
every length, so it gets fewer tokens.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from process import in_process

HEADS, WIDTH, WORDS, PLACES, PROMPT = 12, 768, 50257, 1024, 16
BOUND = 1e-4  # of the largest logit


def weights(layers: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return rng.standard_normal(shape, np.float32) * np.float32(0.02)

    def norm() -> dict[str, Any]:
        return {"gain": 1 + drawn(WIDTH), "bias": drawn(WIDTH)}

    def dense(rows: int, columns: int) -> dict[str, Any]:
        return {"w": drawn(rows, columns), "b": drawn(columns)}

    def block() -> dict[str, Any]:
        return {
            "norm1": norm(),
            "qkv": dense(WIDTH, 3 * WIDTH),
            "out": dense(WIDTH, WIDTH),
            "norm2": norm(),
            "up": dense(WIDTH, 4 * WIDTH),
            "down": dense(4 * WIDTH, WIDTH),
        }

    return {
        "words": drawn(WORDS, WIDTH),
        "places": drawn(PLACES, WIDTH),
        "blocks": [block() for _ in range(layers)],
        "norm": norm(),
    }


def empty_cache(layers: int) -> list[Any]:
    shape = (HEADS, 0, WIDTH // HEADS)
    return [(np.zeros(shape, np.float32), np.zeros(shape, np.float32)) for _ in range(layers)]


def normed(np: Any, x: Any, p: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
    return centred / scale * p["gain"] + p["bias"]


def dense(x: Any, p: Any) -> Any:
    return x @ p["w"] + p["b"]


def gelu(np: Any, x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def heads(x: Any) -> Any:
    return x.reshape(x.shape[0], HEADS, WIDTH // HEADS).swapaxes(0, 1)


def attend(np: Any, q: Any, k: Any, v: Any) -> Any:
    """Of the last tokens to all tokens before them."""
    new, known = q.shape[1], k.shape[1]
    seen = np.arange(known - new, known)[:, None] >= np.arange(known)
    scores = q @ k.swapaxes(-1, -2) * (WIDTH // HEADS) ** -0.5
    scores = np.where(seen, scores, -1e9)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = weights / weights.sum(axis=-1, keepdims=True) @ v
    return mixed.swapaxes(0, 1).reshape(new, WIDTH)


def step(np: Any, p: Any, tokens: Any, cache: Any) -> tuple[Any, Any]:
    """The logits after the last of some tokens, and the cache with them."""
    known = cache[0][0].shape[1]
    x = p["words"][tokens] + p["places"][known : known + tokens.shape[0]]
    longer = []
    for block, (keys, values) in zip(p["blocks"], cache, strict=True):
        qkv = dense(normed(np, x, block["norm1"]), block["qkv"])
        q, k, v = (heads(part) for part in np.split(qkv, 3, axis=-1))
        keys = np.concatenate([keys, k], axis=1)
        values = np.concatenate([values, v], axis=1)
        longer.append((keys, values))
        x = x + dense(attend(np, q, keys, values), block["out"])
        x = x + dense(gelu(np, dense(normed(np, x, block["norm2"]), block["up"])), block["down"])
    return normed(np, x[-1], p["norm"]) @ p["words"].T, longer


Call = Callable[..., Any]
Counts = Callable[[], dict[str, int]]


def numpy_step() -> tuple[Call, Call, Counts]:
    return (lambda *given: step(np, *given)), lambda x: x, dict


def tenfold_step() -> tuple[Call, Call, Counts]:
    import tenfold as tn

    def counts() -> dict[str, int]:
        found = tn.stats()
        return {"compiled": found["kernels_compiled"], "plans": found["plans"]}

    return tn.jit(lambda *given: step(np, *given)), lambda x: x, counts


def jax_step() -> tuple[Call, Call, Counts]:
    import jax

    jax.config.update("jax_platforms", "cpu")
    jitted = jax.jit(lambda *given: step(jax.numpy, *given))
    own = lambda x: jax.block_until_ready(jax.tree.map(jax.numpy.asarray, x))  # noqa: E731
    counts = lambda: {"compiled": jitted._cache_size()}  # noqa: E731
    return (lambda *given: jax.block_until_ready(jitted(*given))), own, counts


def measure(system: str, count: int, layers: int, answers: str) -> dict[str, Any]:
    """The time of each token, the tokens, and what was compiled for each."""
    call, own, counts = globals()[f"{system}_step"]()
    p, cache = own(weights(layers)), own(empty_cache(layers))
    token = own(np.arange(100, 100 + PROMPT))
    times, used, tokens, logits, made = [], [], [], [], [counts()]
    for _ in range(count):
        start, processor = time.perf_counter(), time.process_time()
        found, cache = call(p, token, cache)
        times.append(time.perf_counter() - start)
        used.append(time.process_time() - processor)
        made.append(counts())
        logits.append(np.asarray(found))
        tokens.append(int(logits[-1].argmax()))
        token = own(np.array(tokens[-1:]))
    row = {"times": times, "processor": used, "tokens": tokens}
    row |= {name: [b[name] - a[name] for a, b in itertools.pairwise(made)] for name in made[0]}
    if system == "numpy":
        np.save(answers, np.stack(logits))
        return row
    wanted = np.load(answers)[:count]
    same = [int(w.argmax()) == token for w, token in zip(wanted, tokens, strict=True)]
    row["equal"] = same.index(False) if False in same else count
    row["error"] = max(
        (
            float(np.abs(ours - theirs).max() / np.abs(theirs).max())
            for ours, theirs in zip(logits[: row["equal"] + 1], wanted, strict=False)
        ),
        default=0.0,
    )
    return row


def fresh(system: str, count: int, options: argparse.Namespace, answers: str) -> dict[str, Any]:
    """`measure` in a process of its own, with a cache of its own."""
    name, _, threads = system.partition("-")
    if not find_spec(name):
        return {"failed": "not installed"}
    job = [name, str(count), str(options.layers), answers]
    with tempfile.TemporaryDirectory() as folder:
        settings = {"TENFOLD_CACHE": folder} | (
            {"OPENBLAS_NUM_THREADS": threads} if threads else {}
        )
        return in_process(__file__, *job, limit=options.limit, settings=settings)


def least(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """One row from all rounds: the least of each token's times."""
    wrong = [found for found in rounds if "failed" in found]
    if wrong:
        return wrong[0]
    times = {
        clock: [min(same) for same in zip(*(found[clock] for found in rounds), strict=True)]
        for clock in ("times", "processor")
    }
    return rounds[0] | times


def print_row(system: str, row: dict[str, Any]) -> None:
    if "failed" in row:
        print(f"  {system:8} {row['failed']}")
        return
    times, processor = row["times"], row["processor"]
    figures = [*times[:4], median(times[4:]), max(times[4:]), median(processor[4:])]
    cells = [f"{seconds * 1e3:9.1f}" for seconds in figures]
    print(f"  {system:8} {' '.join(cells)} {sum(times):9.2f} {len(times):7}")


def print_counts(system: str, row: dict[str, Any], numpy: dict[str, Any]) -> None:
    """What was compiled when, and how the tokens and times compare with NumPy's."""
    count, compiled = len(row["times"]), row["compiled"]
    last = max((n for n, found in enumerate(compiled, 1) if found), default=0)
    shown = " ".join(map(str, compiled[:12])) + (" …" if count > 12 else "")
    plans = f", {sum(row['plans'])} plans made" if "plans" in row else ""
    within = "within" if row["error"] <= BOUND else "NOT within"
    ratios = [a / b for a, b in zip(row["times"][1:], numpy["times"][1:], strict=False)]
    print(f"{system}")
    print(f"  compiled by token: {shown}; {sum(compiled)} in all, the last for token {last}{plans}")
    print(f"  {row['equal']} of {count} tokens are NumPy's, logits {within} {BOUND:g}", end="")
    print(f" ({row['error']:.0e})")
    print(f"  from the second token on {median(ratios):.2f} of NumPy's time (median), ", end="")
    print(f"{sum(ratio <= 1 for ratio in ratios)} of {len(ratios)} tokens at or below it")


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        system, count, layers, answers = sys.argv[2:]
        print(json.dumps(measure(system, int(count), int(layers), answers)))
        return
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules would be compiled by each process
    parser = argparse.ArgumentParser(description="GPT-2 sized decoding with a growing cache")
    parser.add_argument("--tokens", type=int, default=100, help="at least 5")
    parser.add_argument("--jax-tokens", type=int, default=20, help="0 leaves JAX out")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one process")
    parser.add_argument("--save", help="a file for all that was found, as lines of JSON")
    options = parser.parse_args()
    counts = dict.fromkeys(("numpy", "numpy-1", "tenfold"), max(5, options.tokens))
    if options.jax_tokens:
        counts["jax"] = max(5, min(options.jax_tokens, options.tokens))
    rounds: dict[str, list[dict[str, Any]]] = {system: [] for system in counts}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for system, count in counts.items():
                answers = str(Path(folder) / "logits.npy")
                rounds[system].append(fresh(system, count, options, answers))
    rows = {system: least(found) for system, found in rounds.items()}
    print(f"{options.layers} layers, a prompt of {PROMPT} tokens: milliseconds a token")
    print(f"  {'':8} {'':39} {'from the fifth on':^29}")
    head = ["token 1", "2", "3", "4", "median", "worst", "processor", "total s"]
    print(f"  {'':8} {' '.join(f'{cell:>9}' for cell in head)} {'tokens':>7}")
    for system, row in rows.items():
        print_row(system, row)
    numpy = min((rows["numpy"], rows["numpy-1"]), key=lambda row: sum(row["times"]))
    for system, row in rows.items():
        if "compiled" in row:
            print_counts(system, row, numpy)
    if options.save:
        with open(options.save, "a") as file:
            file.writelines(json.dumps({"system": s, **row}) + "\n" for s, row in rows.items())


if __name__ == "__main__":
    main()
