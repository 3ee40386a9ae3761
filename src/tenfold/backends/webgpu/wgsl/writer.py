"""WGSL on its way: lines, and what they refer to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.frozen import mutable


@mutable
class Writer:
    """Collects the body of one function.

    Drivers compute floats as if they were real numbers. What they are not to see through goes by
    a barrier, `k32` or `k64`: a zero of a uniform is added to the bits. (Two exclusive ors would
    cancel each other, where a value goes by two barriers.) `computed` are the
    names whose values arithmetic gave, and `compared` those of comparisons with their operands.
    """

    target: WebGPUTarget
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    names: int = 0
    computed: set[str] = field(default_factory=set)
    compared: dict[str, tuple[str, ...]] = field(default_factory=dict)
    maths: dict[tuple[str, str], None] = field(default_factory=dict)  # functions that are called
    tables: dict[str, str] = field(default_factory=dict)  # and functions that look up, by name

    def put(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}_"

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines inside of braces."""
        self.put(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.put("}")

    def let(self, ty: str, text: str, prefix: str = "t") -> str:
        """A name for a value."""
        name = self.fresh(prefix)
        self.put(f"let {name}: {ty} = {text};")
        return name

    def var(self, ty: str, text: str, prefix: str = "r") -> str:
        """A variable that begins with a value."""
        name = self.fresh(prefix)
        self.put(f"var {name}: {ty} = {text};")
        return name

    def kept(self, dtype: str, name: str) -> str:
        """A float that the driver does not know to be computed."""
        return f"k{dtype[1:]}({name})" if name in self.computed else name
