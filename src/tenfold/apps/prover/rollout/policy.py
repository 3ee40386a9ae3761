"""Policy: what scores successor states, so that a search knows where to go on.

The learned policy embeds predicates, constants and canonical variables; a goal is the sum of its
predicate and its two terms, each term in its place; a state is the sum of its goals after a
rectifier; a residual layer follows; a successor's score is its product with the state. The
functions work on NumPy arrays and on traced ones alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.resolution.patterns import Indices

Floats = np.ndarray[Any, np.dtype[np.float32]]


class Weights(NamedTuple):
    """The learned policy. The terms' tables hold constants, then variables."""

    predicates: Floats  # [predicates, width]
    subjects: Floats  # [constants + variables, width]
    objects: Floats  # [constants + variables, width]
    inner: Floats  # [width, hidden]
    bias: Floats  # [hidden]
    outer: Floats  # [hidden, width]


def random_weights(
    program: Program, variables: int, seed: int = 0, width: int = 32, hidden: int = 64
) -> Weights:
    """Weights drawn by seed, for a program and states of so many variables."""
    draw = np.random.default_rng(seed)

    def normal(*shape: int) -> Floats:
        scale = 1 / np.sqrt(shape[0] if len(shape) == 2 and shape[0] in (width, hidden) else 1)
        return np.asarray(draw.standard_normal(shape) * scale, np.float32)

    terms = len(program.constants) + variables
    return Weights(
        normal(max(1, len(program.predicates)), width),
        normal(terms, width),
        normal(terms, width),
        normal(width, hidden),
        np.zeros(hidden, np.float32),
        normal(hidden, width),
    )


def read_weights(path: Path, program: Program) -> tuple[Weights, int]:
    """The weights of a safetensors file, and how many variables they have embeddings for."""
    try:
        tensors = tn.load_safetensors(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", fix="give a readable file") from None
    missing = [name for name in Weights._fields if name not in tensors]
    if missing:
        raise InputError(
            f"{path} has no tensor {missing[0]!r}", fix="save all of a policy's weights"
        )
    made = Weights(*(tensors[name].astype(np.float32) for name in Weights._fields))
    width, hidden = made.inner.shape
    variables = len(made.subjects) - len(program.constants)
    expected = {
        "predicates": (max(1, len(program.predicates)), width),
        "objects": made.subjects.shape,
        "bias": (hidden,),
        "outer": (hidden, width),
    }
    for name, shape in expected.items():
        if tensors[name].shape != shape:
            raise InputError(
                f"{path}: {name} has the shape {tensors[name].shape}, not {shape}",
                fix="give weights made for this data set",
            )
    if variables < 1:
        raise InputError(
            f"{path}: {len(made.subjects)} terms for {len(program.constants)} constants",
            fix="give weights made for this data set",
        )
    return made, variables


def summed(parts: Indices, weights: Weights) -> Traced:
    """The sum of each state's goals [states, width]; the indices are [A, states]."""
    # a goal that is not there has a predicate that no rectifier lets through
    low = np.full_like(weights.predicates[:1], -np.inf)
    goal = np.take(np.concatenate([weights.predicates, low]), parts.predicate, axis=0, mode="clip")
    goal = goal + np.take(weights.subjects, parts.subject, axis=0, mode="clip")
    goal = goal + np.take(weights.objects, parts.object, axis=0, mode="clip")
    return np.maximum(goal, np.float32(0)).sum(axis=0)


class View(NamedTuple):
    """What a state likes in its successors: products with their sums, and with what the first
    layer makes of these."""

    plain: Traced  # [states, width]
    inner: Traced  # [states, hidden]


def judge(sums: Traced, weights: Weights) -> View:
    """The views of states, given the sums of their goals.

    A successor's score is its product with the state, after the residual layer: of its last
    linear map there is one product a state, rather than one for each successor.
    """
    hidden = np.maximum(sums @ weights.inner + weights.bias, np.float32(0))
    scale = np.float32(1 / np.sqrt(sums.shape[-1]))
    here = (sums + hidden @ weights.outer) * scale
    return View(here, here @ weights.outer.T)


def judged(view: View, sums: Traced, row: Traced, weights: Weights) -> Traced:
    """The score of each successor, given the sums of its goals, by its state's view."""
    hidden = np.maximum(sums @ weights.inner + weights.bias, np.float32(0))
    plain = (sums * np.take(view.plain, row, axis=0, mode="clip")).sum(axis=1)
    return plain + (hidden * np.take(view.inner, row, axis=0, mode="clip")).sum(axis=1)


def embed(goals: Traced, count: Traced, constants: int, weights: Weights) -> Traced:
    """The vector of each state; goals are [..., A, 4], counts [...]."""
    size = goals.shape[-2]
    place = np.maximum(goals[..., 0], 0)
    terms = goals[..., 1:3]
    terms = np.where(terms >= 0, terms, constants - 1 - terms)
    terms = np.minimum(terms, weights.subjects.shape[0] - 1)
    goal = weights.predicates[place] + weights.subjects[terms[..., 0]]
    goal = np.maximum(goal + weights.objects[terms[..., 1]], np.float32(0))
    used = np.arange(size) < count[..., None]
    state = np.where(used[..., None], goal, np.float32(0)).sum(axis=-2)
    hidden = np.maximum(state @ weights.inner + weights.bias, np.float32(0))
    return state + hidden @ weights.outer


def compare(states: Traced, successors: Traced) -> Traced:
    """The score of each successor [..., S, width] against its state [..., width]."""
    scale = np.float32(1 / np.sqrt(states.shape[-1]))
    return (successors * states[..., None, :]).sum(axis=-1) * scale


def log_softmax(scores: Traced, usable: Traced) -> Traced:
    """The log-probability of each usable choice along the last axis; -inf for the others."""
    low = np.float32(-np.inf)
    top = np.where(usable, scores, low).max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, np.float32(0))
    total = np.where(usable, np.exp(scores - top), np.float32(0)).sum(axis=-1, keepdims=True)
    return np.where(usable, scores - top - np.log(np.maximum(total, np.float32(1e-38))), low)
