"""Reductions: what they start from, how a value joins, how accumulators become one result."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tenfold.backends.cpu.emit.state import Parts, Val
from tenfold.backends.llvm.writer import BITS, COMPUTE, LANES, Writer, kind, vector
from tenfold.frozen import frozen
from tenfold.types import DTYPES

Slot = tuple[str, str]  # type and first value of something a loop carries


@frozen
class Reduction:
    """One reduction being emitted. `crossing` means the lanes lie along the reduced axis and
    are folded in the end; else each lane has a result of its own."""

    w: Writer
    kind: str
    dtype: str
    place: str  # the dtype of a second operand: a position, a factor or an imaginary part
    copies: int
    wide: bool
    crossing: bool
    careful: bool = False  # keep NaN in max and min at every step, with nothing beside

    @property
    def element(self) -> str:
        return COMPUTE[self.dtype]

    @property
    def ty(self) -> str:
        return vector(self.element, self.wide)

    @property
    def floating(self) -> bool:
        return kind(self.dtype) == "f"

    @property
    def shaped(self) -> bool:
        """Whether the order of joining shows in the bits, and is that of the kernel's fold."""
        return self.kind in ("sum", "dot", "prod") and self.floating and not self.pairs

    @property
    def pairs(self) -> bool:
        """Complex numbers are multiplied."""
        return self.kind.endswith("prod") and bool(self.place)

    @property
    def _watches(self) -> bool:
        """Plain max and min drop a NaN; whether one was seen is kept beside."""
        return self.kind in ("max", "min") and self.floating and not self.careful

    @property
    def _watch(self) -> str:
        """The type that remembers NaN: mask registers where there are some."""
        return vector("i1" if self.w.masked else f"i{BITS[self.element]}", self.wide)

    def _watched(self, copy: int) -> bool:
        """One comparison sees the NaN of two vectors, when all lanes come together anyway."""
        return self._watches and not (self.crossing and copy % 2)

    def slots(self) -> list[Slot]:
        """What the loop carries, with its first values."""
        first = self.identity()
        found: list[Slot] = []
        for copy in range(self.copies):
            found += [(self.ty, p) for p in first]
            if self.kind in ("argmin", "argmax"):
                found.append((vector(COMPUTE[self.place], self.wide), self._zero()))
            if self._watched(copy):
                found.append((self._watch, self._zero()))
        return found

    def _zero(self) -> str:
        return (
            "zeroinitializer" if self.wide else "false" if self._watches and self.w.masked else "0"
        )

    def identity(self) -> Parts:
        w, e = self.w, self.element
        if self.pairs:
            return w.const(e, 1.0, self.wide), w.const(e, 0.0, self.wide)
        if self.kind in ("sum", "dot"):
            return (w.const(e, 0, self.wide),)
        if self.kind in ("prod", "all"):
            return (w.const(e, 1, self.wide),)
        if self.kind == "any":
            return (w.const(e, 0, self.wide),)
        high = self.kind in ("min", "argmin")
        if self.floating:
            return (w.const(e, math.inf if high else -math.inf, self.wide),)
        info = np.iinfo(DTYPES[self.dtype])
        return (w.const(e, info.max if high else info.min, self.wide),)

    def step(
        self,
        held: list[str],
        values: list[Parts],
        masks: list[str | None],
    ) -> list[str]:
        """What is carried after the values of a trip have joined, copy by copy: for each all that
        the reduction takes."""
        out: list[str] = []
        at = 0
        living = [self._alive(v, m) for v, m in zip(values, masks, strict=True)]
        for copy in range(self.copies):
            width = self._width(copy)
            mine = held[at : at + width]
            at += width
            if copy >= len(values):
                out += mine
                continue
            y = living[copy]
            if self.kind in ("argmin", "argmax"):
                out += self._better(mine, values[copy], masks[copy])
                continue
            if self.kind == "dot":
                out.append(self._added(copy, mine, values[copy], masks[copy]))
                continue
            if self._first(copy, mine):
                out += y
            elif self.pairs and self.crossing and (mask := masks[copy]) is not None:
                out += self._multiplied(tuple(mine), y, mask)
            else:
                out += self._join(tuple(mine[: len(y)]), y)
            if self._watched(copy):
                other = y[0]
                if self.crossing and copy + 1 < len(values):
                    other = living[copy + 1][0]
                seen = self._unordered(y[0], other)
                out.append(self.w.op(f"or {self._watch} {mine[-1]}, {seen}"))
        return out

    def _unordered(self, a: str, b: str) -> str:
        """Where one of two is a NaN, as it is remembered."""
        seen = self.w.op(f"fcmp uno {self.ty} {a}, {b}")
        if self.w.masked:
            return seen
        return self.w.op(f"sext {vector('i1', self.wide)} {seen} to {self._watch}")

    def _any_lane(self, watch: str) -> str:
        """Whether a NaN was seen in some lane."""
        if not self.w.masked:
            watch = self.w.op(f"icmp ne {self._watch} {watch}, zeroinitializer")
        return self.w.call("i1", f"llvm.vector.reduce.or.v{LANES}i1", (vector("i1"), watch))

    def _multiplied(self, held: Parts, y: Parts, mask: str) -> Parts:
        """A product of complex numbers where lanes are alive: 1 would change some of the others."""
        made = zip(self._join(held, y), held, strict=True)
        return tuple(self.w.select(mask, self.ty, new, old) for new, old in made)

    def _added(self, copy: int, held: list[str], factors: Parts, mask: str | None) -> str:
        """What is held with a product, unrounded, added to it."""
        a, b = factors
        mask = mask if self.crossing else None
        if self._first(copy, held):
            product, other = self.w.op(f"fmul {self.ty} {a}, {b}"), self.identity()[0]
        else:
            product, other = self.w.intrinsic("fma", self.ty, a, b, held[0]), held[0]
        return product if mask is None else self.w.select(mask, self.ty, product, other)

    def _first(self, copy: int, held: list[str]) -> bool:
        """Whether a value may take the place of what nothing has joined yet. Sums begin with 0 in
        one of the copies that come together, so that none is -0; that a NaN was seen by max or min
        is kept beside."""
        if not self.crossing or held[0] != self.identity()[0]:
            return False
        return self.kind in ("max", "min") or (copy > 0 and self.shaped)

    def merge(self, a: Sequence[str], b: Sequence[str]) -> list[str]:
        """Two partial sums as one; only what has a shape is merged."""
        op = "fmul" if self.kind == "prod" else "fadd"
        return [self.w.op(f"{op} {self.ty} {x}, {y}") for x, y in zip(a, b, strict=True)]

    def combined(self, held: Sequence[str], more: Sequence[str]) -> list[str]:
        """What is held after earlier and after later values as one; of what has no shape."""
        out: list[str] = []
        for copy in range(self.copies):
            here = slice(len(out), len(out) + self._width(copy))
            mine, theirs = list(held[here]), tuple(more[here])
            if self.kind in ("argmin", "argmax"):
                out += self._better(mine, theirs, None)
                continue
            out += self._join(tuple(mine[:1]), theirs[:1])
            if self._watched(copy):
                out.append(self.w.op(f"or {self._watch} {mine[-1]}, {theirs[-1]}"))
        return out

    def joined(self, held: list[str]) -> list[str]:
        """The copies of a partial sum as one, by a balanced tree."""
        width = self._width(0)
        found = [held[n : n + width] for n in range(0, len(held), width)]
        while len(found) > 1:
            pairs = [found[n : n + 2] for n in range(0, len(found), 2)]
            found = [self.merge(*p) if len(p) == 2 else p[0] for p in pairs]
        return found[0]

    def across(self, held: list[str]) -> list[str]:
        """The lanes of a partial sum of one copy as one."""
        return list(self._across(tuple(held)))

    def finish(self, held: list[str]) -> tuple[Val, Val | None]:
        """The result, and the position for argmin and argmax."""
        groups: list[list[str]] = []
        at = 0
        for copy in range(self.copies):
            groups.append(held[at : at + self._width(copy)])
            at += self._width(copy)
        if self.kind in ("argmin", "argmax"):
            if not self.crossing:
                return (
                    Val(tuple(g[0] for g in groups), self.wide),
                    Val(tuple(g[1] for g in groups), self.wide),
                )
            best, place = self._first_best(groups)
            return Val((best,), False), Val((place,), False)
        parts = 2 if self.pairs else 1
        found = [tuple(g[:parts]) for g in groups]
        seen = [g[parts] if len(g) > parts else None for g in groups]
        if not self.crossing:
            made = [(self._or_nan(f, s)) for f, s in zip(found, seen, strict=True)]
            return self._results(made, self.wide)
        while len(found) > 1:
            pairs = [found[n : n + 2] for n in range(0, len(found), 2)]
            found = [self._join(p[0], p[1]) if len(p) == 2 else p[0] for p in pairs]
        result = self._across(found[0])
        flags = [s for s in seen if s is not None]
        if flags:
            whole = flags[0]
            for flag in flags[1:]:
                whole = self.w.op(f"or {self._watch} {whole}, {flag}")
            nan = self.w.const(self.element, math.nan, False)
            result = (self.w.select(self._any_lane(whole), self.element, nan, result[0]),)
        return self._results([result], False)

    def _results(self, found: list[Parts], wide: bool) -> tuple[Val, Val | None]:
        """What was found for each copy; the second part is a further result."""
        first = Val(tuple(parts[0] for parts in found), wide)
        return first, Val(tuple(parts[1] for parts in found), wide) if self.pairs else None

    def _width(self, copy: int) -> int:
        if self.kind in ("argmin", "argmax"):
            return 2
        return (2 if self.pairs else 1) + self._watched(copy)

    def _alive(self, value: Parts, mask: str | None) -> Parts:
        if mask is None or not self.crossing or self.kind in ("argmin", "argmax", "dot"):
            return value
        return tuple(
            self.w.select(mask, self.ty, p, i) for p, i in zip(value, self.identity(), strict=True)
        )

    def _join(self, a: Parts, b: Parts, ty: str = "") -> Parts:
        """Two values as one."""
        w, t = self.w, ty or self.ty
        if self.pairs:
            return self._times(a, b, t)
        x, y = a[0], b[0]
        if self.kind in ("sum", "dot", "prod"):
            op = "mul" if self.kind == "prod" else "add"
            return (w.op(f"{'f' if self.floating else ''}{op} {t} {x}, {y}"),)
        if self.kind in ("any", "all"):
            return (w.op(f"{'or' if self.kind == 'any' else 'and'} {t} {x}, {y}"),)
        high = self.kind in ("max", "argmax")
        if self.floating:
            best = w.select(self._ahead(y, x, t), t, y, x)
            if self.careful:
                best = w.select(w.op(f"fcmp uno {t} {y}, {y}"), t, y, best)
            return (best,)
        sign = "s" if kind(self.dtype) == "i" else "u"
        return (w.intrinsic(f"{sign}{'max' if high else 'min'}", t, x, y),)

    def _ahead(self, y: str, x: str, ty: str = "") -> str:
        """Where one extreme is beyond another."""
        way = "gt" if self.kind in ("max", "argmax") else "lt"
        test = f"fcmp o{way}" if self.floating else f"icmp {'us'[kind(self.dtype) == 'i']}{way}"
        return self.w.op(f"{test} {ty or self.ty} {y}, {x}")

    def _times(self, a: Parts, b: Parts, ty: str) -> Parts:
        """The product of two complex numbers."""
        w = self.w
        if self.kind == "fused prod":
            less = w.op(f"fneg {ty} {w.op(f'fmul {ty} {a[1]}, {b[1]}')}")
            more = w.op(f"fmul {ty} {a[1]}, {b[0]}")
            return w.intrinsic("fma", ty, a[0], b[0], less), w.intrinsic(
                "fma", ty, a[0], b[1], more
            )
        xx, yy, xy, yx = (
            w.op(f"fmul {ty} {a[m]}, {b[n]}") for m, n in ((0, 0), (1, 1), (0, 1), (1, 0))
        )
        return w.op(f"fsub {ty} {xx}, {yy}"), w.op(f"fadd {ty} {xy}, {yx}")

    def _or_nan(self, parts: Parts, seen: str | None) -> Parts:
        if seen is None:
            return parts
        if not self.w.masked:
            zero = "zeroinitializer" if self.wide else "0"
            seen = self.w.op(f"icmp ne {self._watch} {seen}, {zero}")
        nan = self.w.const(self.element, math.nan, self.wide)
        return (self.w.select(seen, self.ty, nan, parts[0]),)

    def _across(self, parts: Parts) -> Parts:
        """The lanes of one vector folded by halves: a fixed tree."""
        if self.pairs:
            return self._product(parts)
        return (self._last(parts[0]),)

    def _last(self, value: str, lanes: int = LANES) -> str:
        """All lanes of one vector as one."""
        one = vector(self.element, True, 1)
        return self.w.op(f"extractelement {one} {self._narrowed(value, 1, lanes)}, i64 0")

    def _narrowed(self, value: str, least: int, lanes: int = LANES) -> str:
        """The lanes of one vector folded by halves until so few are left."""
        while lanes > least:
            low, high = self.w.halves(self.element, value, lanes)
            lanes //= 2
            (value,) = self._join((low,), (high,), ty=vector(self.element, True, lanes))
        return value

    def _product(self, parts: Parts) -> Parts:
        """The lanes of complex numbers multiplied, by the same tree."""
        w, ty = self.w, self.ty
        each: list[Parts] = [
            tuple(w.op(f"extractelement {ty} {p}, i64 {n}") for p in parts) for n in range(LANES)
        ]
        while len(each) > 1:
            half = len(each) // 2
            each = [self._join(each[n], each[n + half], ty=self.element) for n in range(half)]
        return each[0]

    def _better(self, held: list[str], value: Parts, mask: str | None) -> list[str]:
        """The extreme so far and where: the first NaN wins, else the first of equals."""
        w, one = self.w, vector("i1", self.wide)
        (y, place), (best, where) = value, held
        high = self.kind == "argmax"
        if self.floating:
            ahead = w.op(f"fcmp {'ugt' if high else 'ult'} {self.ty} {y}, {best}")
            ordered = w.op(f"fcmp ord {self.ty} {best}, {best}")
            take = w.op(f"and {one} {ahead}, {ordered}")
        else:
            sign = "s" if kind(self.dtype) == "i" else "u"
            take = w.op(f"icmp {sign}{'gt' if high else 'lt'} {self.ty} {y}, {best}")
        if mask is not None and self.crossing:
            take = w.op(f"and {one} {take}, {mask}")
        place_type = vector(COMPUTE[self.place], self.wide)
        return [w.select(take, self.ty, y, best), w.select(take, place_type, place, where)]

    def _first_best(self, groups: list[list[str]]) -> Parts:
        """The extreme of all lanes and copies, at the least position among equals."""
        w, ty, one = self.w, self.ty, vector("i1")
        e, p = self.element, COMPUTE[self.place]
        place_type = vector(p)
        top: Parts = (groups[0][0],)
        for group in groups[1:]:
            top = self._join(top, (group[0],))
        best = self._across(top)[0]
        spread, nan_lane = w.splat(e, best), None
        if self.floating:
            for group in groups:
                flag = w.op(f"fcmp uno {ty} {group[0]}, {group[0]}")
                nan_lane = flag if nan_lane is None else w.op(f"or {one} {nan_lane}, {flag}")
            assert nan_lane is not None
            has_nan = w.call("i1", f"llvm.vector.reduce.or.v{LANES}i1", (one, nan_lane))
            best = w.select(has_nan, e, w.const(e, math.nan, False), best)
            every = w.splat("i1", has_nan)
        far = w.const(p, (1 << (BITS[p] - 1)) - 1, True)
        least = far
        for value, where in groups:
            if self.floating:
                equal = w.op(f"fcmp oeq {ty} {value}, {spread}")
                nan = w.op(f"fcmp uno {ty} {value}, {value}")
                equal = w.select(every, one, nan, equal)
            else:
                equal = w.op(f"icmp eq {ty} {value}, {spread}")
            candidate = w.select(equal, place_type, where, far)
            least = w.intrinsic("smin", place_type, least, candidate)
        place = w.call(p, f"llvm.vector.reduce.smin.v{LANES}{p}", (place_type, least))
        return best, place
