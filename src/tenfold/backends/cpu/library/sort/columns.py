"""Networks that sort all lanes of several registers at once, as LLVM IR.

Registers are compared lane by lane first, so that each lane holds a sorted run, which takes no
shuffle. These runs are merged two by two. Every step compares items whose places in order differ
in one bit, or mirrored, in the first step of a merge. While that bit tells registers apart, nothing
is moved. Otherwise registers are shuffled two by two: the bit becomes a register's, and another
one, that of which the next use is the farthest, becomes a lane's. So most steps of a merge find the
bits where they are, as a cache does its pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tenfold.backends.cpu.library.sort.keys import SortForm
from tenfold.backends.cpu.library.sort.network import compared

_NEVER = 1 << 20


def sorted_columns(
    form: SortForm, name: str, vectors: Sequence[str], lanes: int
) -> tuple[str, list[str]]:
    """The text that sorts all lanes of 2, 4 or 8 vectors, and the vectors that have them then, in
    places of which `settled` knows."""
    return _text(form, name, vectors, _sorting(len(vectors), lanes, _near(form)))


def settled(
    form: SortForm, name: str, vectors: Sequence[str], lanes: int, runs: int
) -> tuple[str, list[str]]:
    """The text that puts what was sorted so in order, vector by vector, or merges two such runs."""
    return _text(form, name, vectors, _settling(len(vectors), lanes, _near(form), runs))


def _near(form: SortForm) -> int:
    return (16 // form.size).bit_length() - 1


def _text(
    form: SortForm, name: str, vectors: Sequence[str], network: _Network
) -> tuple[str, list[str]]:
    values, text, lanes = list(vectors), "", network.lanes
    v = f"<{lanes} x {form.merged}>"
    for number, (a, b, picked) in enumerate(network.steps):
        step = f"{name}.{number}"
        if picked is None:
            text += compared(form, step, values[a], values[b], lanes)
            for one in ("less", "more"):
                more, value = _fenced(form, f"%{step}.{one}", lanes)
                text += more
                values.append(value)
            continue
        second = values[b] if max(picked) >= lanes else "poison"
        order = ", ".join(f"i32 {lane}" for lane in picked)
        text += (
            f"  %{step} = shufflevector {v} {values[a]}, {v} {second}, <{lanes} x i32> <{order}>\n"
        )
        values.append(f"%{step}")
    return text, [values[n] for n in network.made]


def needs(form: SortForm, lanes: int) -> tuple[str, ...]:
    """What such text refers to."""
    v = f"<{lanes} x {form.merged}>"
    if form.real:
        return ()
    fence, floats = _fence(form, lanes)
    return (
        f"declare {floats} @{fence}({floats})",
        f"declare {v} @llvm.smin.v{lanes}{form.merged}({v}, {v})",
        f"declare {v} @llvm.smax.v{lanes}{form.merged}({v}, {v})",
    )


def _fenced(form: SortForm, x: str, lanes: int) -> tuple[str, str]:
    """A vector of which LLVM knows nothing: to learn what bits of a least or a greatest integer are
    known takes it a third of its time. There is such a fence for floats alone."""
    if form.real:
        return "", x
    v, (fence, floats) = f"<{lanes} x {form.merged}>", _fence(form, lanes)
    return (
        f"  {x}.float = bitcast {v} {x} to {floats}\n"
        f"  {x}.fenced = call {floats} @{fence}({floats} {x}.float)\n"
        f"  {x}.item = bitcast {floats} {x}.fenced to {v}\n"
    ), f"{x}.item"


def _fence(form: SortForm, lanes: int) -> tuple[str, str]:
    kind = "float" if form.size == 4 else "double"
    return f"llvm.arithmetic.fence.v{lanes}f{form.item}", f"<{lanes} x {kind}>"


@dataclass
class _Network:
    """Steps over numbered values, the vectors given first. A comparison makes two, the less and the
    greater; a shuffle, which has the lanes that it picks, one."""

    lanes: int
    near: int  # bits of the number of a lane within 16 bytes
    made: list[int]  # which value each register is now
    here: list[list[int]]  # the places in order of the items of each
    steps: list[tuple[int, int, tuple[int, ...] | None]] = field(default_factory=list)
    values: int = 0

    def compare(self, a: int, b: int) -> tuple[int, int]:
        self.steps.append((a, b, None))
        self.values += 2
        return self.values - 2, self.values - 1

    def shuffle(self, a: int, b: int, picked: Sequence[int]) -> int:
        if list(picked) == list(range(self.lanes)):
            return a
        self.steps.append((a, b, tuple(picked)))
        self.values += 1
        return self.values - 1

    def found(self) -> dict[int, tuple[int, int]]:
        """Register and lane of each place."""
        return {
            place: (register, lane)
            for register, places in enumerate(self.here)
            for lane, place in enumerate(places)
        }

    def own(self, bits: int) -> list[int]:
        """The bits of places that tell registers apart: they are the same in all lanes of one."""
        return [
            bit
            for bit in range(bits)
            if all(len({place >> bit & 1 for place in places}) == 1 for places in self.here)
        ]


@lru_cache(maxsize=16)
def _sorting(count: int, lanes: int, near: int) -> _Network:
    inner, outer = lanes.bit_length() - 1, count.bit_length() - 1
    here = [[lane * count + n for lane in range(lanes)] for n in range(count)]
    net = _Network(lanes, near, list(range(count)), here, values=count)
    for a, b in _exchanges(count):
        net.made[a], net.made[b] = net.compare(net.made[a], net.made[b])
    _merge(net, range(outer, outer + inner), inner + outer)
    return net


@lru_cache(maxsize=16)
def _settling(count: int, lanes: int, near: int, runs: int) -> _Network:
    inner, bits = lanes.bit_length() - 1, (count * lanes).bit_length() - 1
    run = _sorting(count // runs, lanes, near).here
    here = [[at + n * lanes * len(run) for at in places] for n in range(runs) for places in run]
    net = _Network(lanes, near, list(range(count)), here, values=count)
    if runs == 2:
        _merge(net, range(bits - 1, bits), bits)
    wanted = set(range(inner, bits))
    while missing := wanted.difference(net.own(bits)):
        spare = min(b for b in net.own(bits) if b < inner)
        _exchange(net, min(missing), spare)
    at: list[int] = [0] * count
    for register, places in zip(net.made, net.here, strict=True):
        order = sorted(range(lanes), key=places.__getitem__)
        at[min(places) // lanes] = net.shuffle(register, register, order)
    net.made = at
    return net


def _merge(net: _Network, tops: range, bits: int) -> None:
    """Merge runs two by two, whose places differ in each of these bits in turn."""
    inner = net.lanes.bit_length() - 1
    steps = [
        step
        for top in tops
        for step in ((top, (2 << top) - 1), *((bit, 1 << bit) for bit in reversed(range(top))))
    ]
    for number, (bit, flipped) in enumerate(steps):
        later = [b for b, _ in steps[number + 1 :]]

        def use(bit: int, later: list[int] = later) -> tuple[int, int]:
            """When a bit is needed: at last those that tell registers apart in the end."""
            return (later.index(bit) if bit in later else _NEVER, -int(bit >= inner))

        spare = max((b for b in net.own(bits) if b != bit), key=use, default=bit)
        _step(net, bit, flipped, spare)


def _exchanges(count: int) -> list[tuple[int, int]]:
    """Batcher's merge-exchange of so many: comparisons, the less to go to the first."""
    made, run = [], 1
    while run < count:
        step = run
        while step:
            made += [
                (a, a + step)
                for start in range(step % run, count - step, 2 * step)
                for a in range(start, min(start + step, count - step))
                if a // (2 * run) == (a + step) // (2 * run)
            ]
            step //= 2
        run *= 2
    return made


def _step(net: _Network, bit: int, flipped: int, spare: int) -> None:
    """Compare each place with the one that differs in these bits, of which this is the highest."""
    at, done = net.found(), set[int]()
    for one, places in enumerate(net.here):
        if one in done:
            continue
        two, order = at[places[0] ^ flipped][0], list(range(net.lanes))
        if one == two:
            two = at[places[0] ^ 1 << spare][0]
            _swap(net, at, (one, two), flipped)
        else:
            if places[0] >> spare & 1:
                one, two = two, one
            order = [at[place ^ flipped][1] for place in net.here[one]]
        other = net.shuffle(net.made[two], net.made[two], order)
        net.made[one], net.made[two] = net.compare(net.made[one], other)
        low = [min(place, place ^ flipped) for place in net.here[one]]
        net.here[one], net.here[two] = low, [place ^ flipped for place in low]
        done |= {one, two}


def _exchange(net: _Network, bit: int, spare: int) -> None:
    """Have a bit tell registers apart in place of another one."""
    at, done = net.found(), set[int]()
    for one, places in enumerate(net.here):
        if one not in done:
            two = at[places[0] ^ 1 << spare][0]
            _swap(net, at, (one, two), 1 << bit)
            done |= {one, two}


def _swap(
    net: _Network, at: dict[int, tuple[int, int]], both: tuple[int, int], flipped: int
) -> None:
    """Two registers shuffled into one with the lower places, and one with those that these are
    compared with. What tells the two apart becomes the highest bit of a lane among those within 16
    bytes, or among the others: a single instruction does either."""
    one, two = both
    gone = at[net.here[one][0] ^ flipped][1].bit_length() - 1
    slots = net.lanes.bit_length() - 1
    group = range(net.near) if gone < net.near else range(net.near, slots)
    old = list(range(slots))
    for slot, before in zip(group, [n for n in group if n != gone] + [slots], strict=True):
        old[slot] = before
    low = []
    for lane in range(net.lanes):
        source = sum(1 << before for slot, before in enumerate(old) if lane >> slot & 1)
        place = net.here[two if source >> slots else one][source & net.lanes - 1]
        low.append(min(place, place ^ flipped))
    a, b = net.made[one], net.made[two]
    for register, places in ((one, low), (two, [place ^ flipped for place in low])):
        picked = [at[place][1] + net.lanes * (at[place][0] == two) for place in places]
        net.made[register], net.here[register] = net.shuffle(a, b, picked), places
