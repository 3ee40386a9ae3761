"""Embeddings: candidates scored by DistMult or ComplEx, from a safetensors file.

DistMult scores a triple by the sum of s·r·o over the dimensions, ComplEx by the real part of the
sum of s·r·conj(o). Both are the product of a vector, made of the relation and the constant that is
kept, with the embedding of the candidate: a row of scores for each query is one matrix product.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import traced
from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.errors import InputError, ScoreError
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.input.queries import Query

Floats = np.ndarray[Any, np.dtype[np.float64]]
_HOW = (
    "save tensors 'entities' and 'relations' (or .real and .imag of each), and their names as "
    "JSON lists in the metadata under the same names"
)


@dataclass(frozen=True, slots=True)
class Embedding:
    """Vectors of a program's constants and predicates, in ComplEx the real parts first."""

    entities: Floats  # [constants, width]
    relations: Floats  # [predicates, width]
    is_complex: bool
    backend: str

    def vectors(self, asked: Sequence[Query]) -> Floats:
        """For each query the vector whose products with the entities are its scores."""
        p = [q.fact[0] for q in asked]
        r, kept = self.relations[p], self.entities[[q.kept for q in asked]]
        if not self.is_complex:
            return r * kept
        half = self.entities.shape[1] // 2
        a, b = r[:, :half], r[:, half:]
        c, d = kept[:, :half], kept[:, half:]
        head = np.array([q.mode == "head" for q in asked])[:, None]
        # tails: s·r with the conjugate of o; heads: s with r·conj(o), of which the real part
        tails = np.concatenate([c * a - d * b, c * b + d * a], axis=1)
        heads = np.concatenate([a * c + b * d, a * d - b * c], axis=1)
        return np.where(head, heads, tails)

    def scores(self, asked: Sequence[Query]) -> Floats:
        """The score of every constant in each query's place [queries, constants]."""
        entities = self.entities.T
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is an error below
            vectors = self.vectors(asked)
            if self.backend == "python":
                made = vectors @ entities
            else:
                made = products.on(self.backend)(vectors, np.ascontiguousarray(entities))
        if not np.isfinite(made).all():
            raise ScoreError("a score is not a number", fix="look at the embeddings' magnitudes")
        return np.asarray(made, np.float64)

    def order(self, asked: Sequence[Query]) -> np.ndarray[Any, np.dtype[np.int8]]:
        """How every constant compares with each query's own: 1 better, -1 worse, 0 as good.

        What differs by no more than rounding can is as good: no backend tells it otherwise.
        """
        scores = self.scores(asked)
        apart = scores - scores[np.arange(len(asked)), [q.own for q in asked]][:, None]
        norms = np.sqrt(np.square(self.vectors(asked)).sum(axis=1))
        largest = np.sqrt(np.square(self.entities).sum(axis=1).max(initial=0))
        rounding = 2 * self.entities.shape[1] * np.finfo(np.float64).eps * norms * largest
        same = np.abs(apart) <= rounding[:, None]
        return np.where(same, 0, np.sign(apart)).astype(np.int8)


@traced()
def products(vectors: Traced, entities: Traced) -> Traced:
    """The product of each vector with each entity's, which are columns."""
    return vectors @ entities


def read_embedding(path: Path, program: Program, asked: Sequence[Query], backend: str) -> Embedding:
    """The embeddings of a file, for what some queries ask about."""
    try:
        tensors, names = tn.load_safetensors(path), _names(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", fix="give a readable file") from None
    parts = {}
    for kind in ("entities", "relations"):
        parts[kind] = _tensor(path, kind, tensors)
        if len(parts[kind]) != len(names[kind]):
            raise InputError(
                f"{path} names {len(names[kind])} {kind} and has vectors of {len(parts[kind])}",
                fix=_HOW,
            )
    entities, relations = parts["entities"], parts["relations"]
    if entities.shape[1] != relations.shape[1] or np.iscomplexobj(entities) != np.iscomplexobj(
        relations
    ):
        raise InputError(
            f"{path}: entities are {entities.dtype}{list(entities.shape)}, relations "
            f"{relations.dtype}{list(relations.shape)}",
            fix="give both the same width, and both complex or both real numbers",
        )
    constants = {q.kept for q in asked} | {q.own for q in asked}
    for pool in {id(q.pool): q.pool for q in asked}.values():
        constants |= pool
    return Embedding(
        _aligned(path, entities, names["entities"], program.constants, constants, "entity"),
        _aligned(
            path,
            relations,
            names["relations"],
            program.predicates,
            {q.fact[0] for q in asked},
            "relation",
        ),
        bool(np.iscomplexobj(entities)),
        backend,
    )


def _names(path: Path) -> dict[str, list[str]]:
    """The names in a file's metadata; that it is a safetensors file is known."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        metadata = json.loads(file.read(length)).get("__metadata__", {})
    found = {}
    for kind in ("entities", "relations"):
        try:
            found[kind] = json.loads(metadata[kind])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path} does not name its {kind}", fix=_HOW) from None
        names = found[kind]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(f"{path}: the names of its {kind} are no list of names", fix=_HOW)
        if len(set(names)) != len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise InputError(f"{path} names {twice!r} twice", fix="give each name once")
    return found


def _tensor(path: Path, kind: str, tensors: dict[str, Any]) -> Any:
    """A table of vectors, in float64 or complex128."""
    if f"{kind}.real" in tensors and f"{kind}.imag" in tensors:
        real, imaginary = tensors[f"{kind}.real"], tensors[f"{kind}.imag"]
        if real.shape != imaginary.shape or any(t.dtype.kind == "c" for t in (real, imaginary)):
            raise InputError(
                f"{path}: {kind}.real and {kind}.imag are not two tables of real numbers of one "
                "shape",
                fix=_HOW,
            )
        made = real.astype(np.float64) + 1j * imaginary.astype(np.float64)
    elif kind in tensors:
        wide = np.complex128 if tensors[kind].dtype.kind == "c" else np.float64
        made = tensors[kind].astype(wide)
    else:
        raise InputError(f"{path} has no tensor {kind!r}", fix=_HOW)
    if made.ndim != 2 or made.shape[1] == 0:
        raise InputError(
            f"{path}: {kind} has the shape {list(made.shape)}", fix="give a vector for each name"
        )
    if not np.isfinite(made).all():
        raise InputError(f"{path}: {kind} holds what is not a number", fix="train them anew")
    return made


def _aligned(
    path: Path,
    vectors: Any,
    names: Sequence[str],
    wanted: Sequence[str],
    needed: set[int],
    kind: str,
) -> Floats:
    """The vectors in the order of a program's numbers; zeros where none is needed."""
    place = {name: i for i, name in enumerate(names)}
    missing = [wanted[i] for i in sorted(needed) if wanted[i] not in place]
    if missing:
        raise InputError(
            f"{path} has no vector for {len(missing)} of the data's names: the {kind} "
            f"{missing[0]!r} is the first",
            fix="give embeddings trained on this data set",
        )
    flat = (
        np.concatenate([vectors.real, vectors.imag], axis=1)
        if np.iscomplexobj(vectors)
        else vectors
    )
    made = np.zeros((len(wanted), flat.shape[1]))
    there = [i for i, name in enumerate(wanted) if name in place]
    made[there] = flat[[place[wanted[i]] for i in there]]
    return made
