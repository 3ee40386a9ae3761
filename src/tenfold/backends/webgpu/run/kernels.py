"""The shaders of kernels on a device: compiled once for all sizes of which their facts hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from tenfold.backends.webgpu.emit.emit import prepare
from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.device import Device
from tenfold.backends.webgpu.native.library import Handle
from tenfold.backends.webgpu.run.beyond import beyond
from tenfold.backends.webgpu.run.gates import Gates
from tenfold.backends.webgpu.run.moves import Mover
from tenfold.backends.webgpu.run.request import Ahead, Request
from tenfold.backends.webgpu.run.shifted import Odd, Shifted, shifted
from tenfold.backends.webgpu.shader import WORDS, ZERO, Shader
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.digest import sha256
from tenfold.errors import Unsupported
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import Facts
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.locks import Lock
from tenfold.plan import KernelStep, Plan
from tenfold.plan.steps.plan import ARENA
from tenfold.plan.steps.slots import ALIGN
from tenfold.stats import count

_KINDS = {WORDS: s.READ_ONLY_BINDING, ZERO: s.UNIFORM_BINDING}


@frozen(eq=False)
class KernelText:
    """A kernel as WGSL, for all sizes of which the facts hold; some of its buffers may begin amid
    what is bound."""

    shader: Shader
    facts: Facts
    shifted: Shifted
    odd: Odd


@frozen(eq=False)
class Compiled:
    """A shader on a device."""

    shader: Shader
    kinds: tuple[int, ...]  # of its bindings
    pipelines: dict[str, Handle]  # by entry point


@frozen(eq=False)
class KernelCode:
    """A kernel on a device."""

    text: KernelText
    name: str
    compiled: Compiled


@frozen(eq=False)
class FoundKernel:
    """A kernel of a plan: the buffers that may begin amid what is bound, and its code; or why the
    device can't run it."""

    odd: Odd
    code: KernelCode | None
    beyond: str = ""


Code = Mapping[SizedKernel, FoundKernel]


class Kernels:
    """The kernels of one device, each text once."""

    def __init__(self, device: Device, target: WebGPUTarget, strict: bool) -> None:
        self.device, self.target, self.strict = device, target, strict
        self._known: dict[tuple[Kernel, Odd], list[KernelCode]] = {}
        self._compiled: dict[str, Compiled] = {}
        self._making: dict[str, Lock] = {}  # by whoever compiles a shader
        self._lock = Lock()
        self.ahead = Ahead()
        self.judged: set[str] = set()
        self.mover, self.gates = Mover(device, target), Gates(device, target)

    def find(self, plan: Plan, request: Request | None = None) -> dict[SizedKernel, FoundKernel]:
        """The kernels that a plan calls; those that are new are compiled, but for what was
        requested while it was made."""
        calls = odd_buffers(plan, self.target)
        there = [] if request is None else request.texts
        with self._lock:
            texts, left = dict[SizedKernel, KernelText](), dict[SizedKernel, str]()
            for call, odd in calls.items():
                reason = beyond(call, self.target)
                if reason is not None:
                    left[call] = reason
                elif self._at_hand(call, odd) is None:
                    others = [*there, *texts.values()]
                    try:
                        texts[call] = prepared(call, odd, self.target, self.strict, others)
                    except Unsupported as error:
                        left[call] = error.message
            self._add(texts.values())
            count("kernels_compiled", len({id(text) for text in texts.values()}))
            return {
                call: FoundKernel(odd, None, left[call])
                if call in left
                else FoundKernel(odd, self.code(call, odd))
                for call, odd in calls.items()
            }

    def written(self, call: SizedKernel, others: Sequence[KernelText]) -> KernelText | None:
        """A kernel that is new, or one of the others, if all its buffers begin where they can be
        bound; None where there is nothing to be compiled for it, or few will begin so."""
        if self.target.alignment > ALIGN or beyond(call, self.target) is not None:
            return None
        with self._lock:
            if self._at_hand(call, frozenset()) is not None:
                return None
        try:
            return prepared(call, frozenset(), self.target, self.strict, others)
        except Unsupported:
            return None

    def code(
        self, call: SizedKernel, odd: Odd, starts: Sequence[tuple[int, int]] = ()
    ) -> KernelCode:
        """The code of a kernel whose buffers begin at these elements, by their numbers."""
        with self._lock:
            found = self._at_hand(call, odd, starts)
            if found is None:
                self._add([prepared(call, odd, self.target, self.strict, (), starts)])
                count("kernels_compiled")
                found = self._at_hand(call, odd, starts)
                assert found is not None
            return found

    def add(self, texts: Iterable[KernelText]) -> None:
        """Have kernels found that were written elsewhere."""
        with self._lock:
            self._add(texts)

    def _at_hand(
        self, call: SizedKernel, odd: Odd, starts: Sequence[tuple[int, int]] = ()
    ) -> KernelCode | None:
        own = shifted(call.kernel, odd).call(call, dict(starts))
        codes = self._known.get((call.kernel, odd), ())
        return next((one for one in codes if one.text.facts.hold(own.sizes)), None)

    def _add(self, texts: Iterable[KernelText]) -> None:
        """Compile texts, several at once."""
        new = list({id(text): text for text in texts}.values())
        for text in new[1:]:
            self.ahead.add(partial(self._code, text))
        for text in new:
            kernel = text.shifted.original
            self._known.setdefault((kernel, text.odd), []).append(self._code(text))

    def _code(self, text: KernelText) -> KernelCode:
        name = sha256(text.shader.pack()).hexdigest()[:32]
        return KernelCode(text, name, self.compiled(text.shader, name))

    def routine(self, shader: Shader) -> Compiled:
        """The shader of a routine."""
        return self.compiled(shader, sha256(shader.pack()).hexdigest()[:32])

    def compiled(self, shader: Shader, name: str) -> Compiled:
        """A shader by the digest of its data; where another thread is at it, that is waited for."""
        found = self._compiled.get(name)
        if found is None:
            with self._making.setdefault(name, Lock()):
                found = self._compiled.get(name) or self._made(shader)
                self._compiled[name] = found
                self._making.pop(name, None)
        return found

    def _made(self, shader: Shader) -> Compiled:
        kinds = tuple(_KINDS.get(b.kind, s.STORAGE_BINDING) for b in shader.bindings)
        module = self.device.shader(shader.text)
        entries = dict.fromkeys(d.entry for d in shader.dispatches)
        pipelines = {entry: self.device.pipeline(module, kinds, entry) for entry in entries}
        return Compiled(shader, kinds, pipelines)


def prepared(
    call: SizedKernel,
    odd: Odd,
    target: WebGPUTarget,
    strict: bool,
    others: Iterable[KernelText] = (),
    starts: Sequence[tuple[int, int]] = (),
) -> KernelText:
    """A kernel as WGSL, for some sizes and all that are like them; one of the others, if it is."""
    made = shifted(call.kernel, odd)
    own = made.call(call, dict(starts))
    for one in others:
        if one.shifted is made and one.facts.hold(own.sizes):
            return one
    shader, facts = prepare(own, target, strict)
    return KernelText(shader, facts, made, odd)


def odd_buffers(plan: Plan, target: WebGPUTarget) -> dict[SizedKernel, Odd]:
    """The distinct calls of a plan, with the buffers that may begin amid what is bound, in any of
    them: one code serves all calls that are equal."""
    found: dict[SizedKernel, Odd] = {}
    for one in plan.every:
        for step in one.steps:
            if isinstance(step, KernelStep):
                call = one.call(step)
                odd = frozenset(
                    n for n, slot in enumerate(step.slots) if _may_shift(one, slot, target)
                )
                found[call] = found.get(call, frozenset()) | odd
    return found


def _may_shift(plan: Plan, number: int, target: WebGPUTarget) -> bool:
    """Whether a slot may begin at no place where memory can be bound. Arenas lie in one another at
    multiples of what slots are aligned to."""
    slot = plan.slots[number]
    return bool(slot.offset % target.alignment) or (
        target.alignment > ALIGN and slot.place == ARENA
    )
