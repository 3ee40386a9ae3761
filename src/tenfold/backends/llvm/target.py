"""What LLVM makes code for: a processor's level, what of it matters, and the version that compiles.

The processor is named by its level (x86-64-v3, x86-64-v4), not by its model: two machines of one
level share cached code and give the same bits. A feature is named beside it where products of bytes
hang on it (VNNI): they are exact, so bits are the same with and without.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import lru_cache
from importlib.machinery import PathFinder
from typing import Any

from tenfold.digest import sha256
from tenfold.errors import ValueProblem
from tenfold.frozen import frozen

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
_LEVELS = (("x86-64-v2", _V2), ("x86-64-v3", _V3), ("x86-64-v4", _V4))
LEVELS = ("x86-64", *(name for name, _ in _LEVELS))
# Sums of four products of bytes: with AVX-512, and with AVX2 alone. They belong to no level.
_DOTS = {64: "avx512vnni", 32: "avxvnni"}  # by the bytes of a register
FEATURES = frozenset((*_V2, *_V3, *_V4, *_DOTS.values()))

# Worth naming where a machine has them but misses the level that implies them. Everything else
# (crypto, tiles, transactions) changes no code of ours and would only split the cache.
_EXTRAS = ("avx", "avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "bmi2", "f16c", "fma")


@frozen
class LLVMTarget:
    """The machine code is made for, with the facts a code generator asks about.

    >>> LLVMTarget("x86_64-linux-gnu", "x86-64-v3", "", 32, False, True, True, "0.50.0").arch
    'x86_64'
    """

    triple: str
    cpu: str
    features: str  # as LLVM takes them, '+fma,+avx2'; beyond what `cpu` implies
    vector_bytes: int  # of the widest register
    masked: bool  # masked loads and stores cost as much as plain ones
    fma: bool
    half: bool  # float16 converts in hardware
    llvmlite: str  # the version that compiles; '' where there is none
    fast: bool = False  # a GPU's own exp and tanh, where these are asked for

    @property
    def arch(self) -> str:
        return self.triple.partition("-")[0]

    @property
    def moves(self) -> bool:
        """Masked moves are those of AVX."""
        return self.arch == "x86_64" and not self.masked and "avx" in _implied(self)

    @property
    def dots(self) -> bool:
        """Four products of unsigned and signed bytes are added in one instruction (VNNI)."""
        return f"+{_DOTS.get(self.vector_bytes)}" in self.features.split(",")

    @property
    def name(self) -> str:
        """The level, and what there is beyond it.

        >>> target_with("x86_64-unknown-linux-gnu", ["avx", "fma"]).name
        'x86-64+avx+fma'
        """
        return self.cpu + self.features.replace(",", "")

    @property
    def rank(self) -> int:
        return self.vector_bytes

    @property
    def versions(self) -> Mapping[str, str]:
        """Those of the libraries that make its code."""
        return {"llvmlite": self.llvmlite}

    def __str__(self) -> str:
        return f"{self.triple} {self.cpu} {self.features}".strip()

    def lanes(self, itemsize: int) -> int:
        """How many items of this size one register holds."""
        return max(1, self.vector_bytes // itemsize)

    @property
    def digest(self) -> str:
        """The part of a cache key that stands for the target and its compiler."""
        text = "\n".join((self.triple, self.cpu, self.features, self.llvmlite))
        text += "\nfast" if self.fast else ""
        return sha256(text.encode()).hexdigest()[:32]

    def missing_on(self, host: LLVMTarget) -> str | None:
        """Why code for this target can't run on the host, or None. Who compiled it is all one."""
        if self.triple != host.triple:
            return f"it is for {self.triple}, this is {host.triple}"
        if self.arch != "x86_64":
            return None if self.cpu == host.cpu else f"it is for {self.cpu}, this is {host.cpu}"
        missing = _implied(self) - _implied(host)
        return f"it needs {', '.join(sorted(missing))}" if missing else None


def _implied(target: LLVMTarget) -> frozenset[str]:
    """Every feature that code for this x86-64 target may use."""
    found = {feature[1:] for feature in target.features.split(",") if feature}
    for name, members in _LEVELS:
        if target.cpu >= name:
            found.update(members)
    return frozenset(found)


def target_with(triple: str, features: Collection[str], llvmlite: str = "") -> LLVMTarget:
    """The target of a triple and its processor's features, by LLVM's names.

    >>> target_with("x86_64-unknown-linux-gnu", ["fma", "avx"]).features
    '+avx,+fma'
    """
    arch = triple.partition("-")[0]
    if arch in ("aarch64", "arm64"):
        return LLVMTarget(triple, "generic", "", 16, False, True, True, llvmlite)
    if arch != "x86_64":
        return LLVMTarget(triple, "generic", "", 16, False, False, False, llvmlite)
    has = set(features)
    cpu, implied = "x86-64", set[str]()
    for name, members in _LEVELS:
        if not has.issuperset(members):
            break
        cpu = name
        implied.update(members)
    wide = has.issuperset(("avx512f", "avx512bw", "avx512dq", "avx512vl"))
    size = 64 if wide else 32 if "avx2" in has else 16
    worth = (*_EXTRAS, _DOTS.get(size))
    extras = [name for name in worth if name in has and name not in implied]
    return LLVMTarget(
        triple=triple,
        cpu=cpu,
        features=",".join(f"+{name}" for name in extras),
        vector_bytes=size,
        masked=wide,
        fma="fma" in has,
        half="f16c" in has,
        llvmlite=llvmlite,
    )


def named(name: str, like: LLVMTarget) -> LLVMTarget:
    """The target of a level of the same architecture, by its name; VNNI may stand beside it.

    >>> here = target_with("x86_64-unknown-linux-gnu", ())
    >>> named("x86-64-v3", here).vector_bytes, named("x86-64-v4+avx512vnni", here).dots
    (32, True)
    """
    cpu, *more = name.split("+")
    features = set(more)
    for level, members in _LEVELS:
        if level <= cpu:
            features.update(members)
    made = target_with(like.triple, features, like.llvmlite)
    if made.name != name:
        known = LEVELS if like.arch == "x86_64" else (made.name,)
        raise ValueProblem(
            f"{name!r} is no level of {like.arch}", fix=f"give one of {', '.join(known)}"
        )
    return made


def target_machine(target: LLVMTarget) -> Any:
    """LLVM's machine that emits position-independent objects for this target."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
    )


@lru_cache(maxsize=1)
def llvmlite_version() -> str:
    """The version of llvmlite at hand, found without importing it; '' where there is none."""
    # Neither importlib.util nor a regular expression: both take longer than all the rest.
    spec = PathFinder.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return ""
    try:
        place = os.path.join(os.path.dirname(spec.origin), "_version.py")
        with open(place, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        text = ""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.strip().endswith("version") and value.strip(" '\""):
            return value.strip(" '\"")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("llvmlite")
    except PackageNotFoundError:
        return ""
