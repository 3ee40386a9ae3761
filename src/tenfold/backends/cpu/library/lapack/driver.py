"""The text of a routine over matrices: loops, copies to LAPACK's order and back, calls by
reference.

LAPACK has matrices column by column, and as in NumPy they are of double precision, whatever the
arrays are. What a call takes by reference is a word of `params`: sizes,
letters such as "L" too, whose first byte such a word is: `%n` is the word, `%n.at` where it lies.
Areas are parts of scratch memory, by their offsets in `params`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.library.loops import each, when
from tenfold.backends.cpu.library.routine import UNSOLVED
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import COMPUTE, SIZES, Writer, float_text, kind

ONE, ZERO = (float_text("double", value) for value in (1.0, 0.0))
_NEEDS = (
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare i64 @llvm.smin.i64(i64, i64)",
)
_TILE = 16  # rows and columns that are transposed at a time


class Driver:
    """The body of a routine, for one matrix of each input: `%x0` and on are the inputs' matrices,
    `%y0` and on those of the results. What is computed with is of double precision."""

    def __init__(self, dtype: str, target: LLVMTarget) -> None:
        self.w = Writer(target)
        self.complex = kind(dtype) == "c"
        self.part = COMPUTE[dtype]  # of an element in memory
        self.size = SIZES[dtype]
        self.element = self._of(self.part)
        self.wide = self._of("double")
        self.one = f"<double {ONE}, double {ZERO}>" if self.complex else ONE

    def _of(self, part: str) -> str:
        return f"<2 x {part}>" if self.complex else part

    # Values.

    def place(self, matrix: str, index: str, type: str) -> str:
        return self.w.op(f"getelementptr {type}, ptr {matrix}, i64 {index}")

    def load(self, matrix: str, index: str, type: str | None = None) -> str:
        """An element of an area."""
        type = type or self.wide
        return self.w.op(f"load {type}, ptr {self.place(matrix, index, type)}, align 8")

    def store(self, value: str, matrix: str, index: str, type: str | None = None) -> None:
        type = type or self.wide
        self.w.put(f"store {type} {value}, ptr {self.place(matrix, index, type)}, align 8")

    def put(self, value: str, matrix: str, index: str, *, part: bool = False) -> None:
        """Store an element, or a part of one, as results are."""
        wide, type = ("double", self.part) if part else (self.wide, self.element)
        if wide != type:
            value = self.w.op(f"fptrunc {wide} {value} to {type}")
        self.w.put(f"store {type} {value}, ptr {self.place(matrix, index, type)}, align 4")

    def at(self, i: str, width: str, j: str) -> str:
        """The index of element (i, j) in rows of this width."""
        return self.w.op(f"add i64 {self.w.op(f'mul i64 {i}, {width}')}, {j}")

    # Work.

    def call(self, routine: str, *arguments: str, letters: int = 0) -> None:
        """A call of LAPACK. Fortran has the lengths of its first arguments, if these are letters,
        behind all others."""
        name = f"tn_{'z' if self.complex else 'd'}{routine}"
        given = [f"ptr {a}" for a in arguments] + ["i64 1"] * letters
        types = ["ptr"] * len(arguments) + ["i64"] * letters
        self.w.declare(f"void @{name}({', '.join(types)})")
        self.w.put(f"call void @{name}({', '.join(given)})")

    def take(self, source: str, target: str, rows: str, columns: str) -> None:
        """A matrix of so many rows into an area, column by column."""
        self.w.put(f"call void @tn_take(ptr {source}, ptr {target}, i64 {rows}, i64 {columns})")

    def give(self, source: str, target: str, rows: str, columns: str) -> None:
        """A matrix of so many rows from an area, where it lies column by column."""
        self.w.put(f"call void @tn_give(ptr {source}, ptr {target}, i64 {columns}, i64 {rows})")

    def give_reals(self, source: str, target: str, count: str) -> None:
        """Real numbers from an area."""
        with each(self.w, "0", count) as i:
            self.put(self.load(source, i, "double"), target, i, part=True)

    def clear(self, target: str, count: str, size: int) -> None:
        length = self.w.op(f"mul i64 {count}, {size}")
        self.w.put(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {length}, i1 false)")

    def give_upper(self, source: str, height: str, target: str, rows: str, columns: str) -> None:
        """The upper triangle of a matrix in columns of this height, 0 below it."""
        self._give_triangle("sge", source, height, target, rows, columns)

    def give_lower(self, source: str, height: str, target: str, rows: str, columns: str) -> None:
        """The lower triangle of a matrix in columns of this height, 0 above it."""
        self._give_triangle("sle", source, height, target, rows, columns)

    def _give_triangle(
        self, test: str, source: str, height: str, target: str, rows: str, columns: str
    ) -> None:
        w = self.w
        with each(w, "0", rows) as i, each(w, "0", columns) as j:
            value = self.load(source, self.at(j, height, i))
            kept = w.op(f"icmp {test} i64 {j}, {i}")
            value = w.op(f"select i1 {kept}, {self.wide} {value}, {self.wide} zeroinitializer")
            self.put(value, target, self.at(i, columns, j))

    def unsolved_if(self, condition: str) -> None:
        """Leave all of it to the evaluator."""
        with when(self.w, condition):
            self.w.put(f"ret i32 {UNSOLVED}")
            self.w.label(self.w.fresh("never"))

    def unsolved_by_info(self) -> None:
        """Leave what LAPACK could not do to the evaluator."""
        info = self.w.op("load i64, ptr %info, align 8")
        self.unsolved_if(self.w.op(f"icmp ne i64 {info}, 0"))

    def unsolved_unless_finite(self, area: str, count: str) -> None:
        """Leave what has an infinity or a NaN in it to the evaluator."""
        w, parts = self.w, self.w.op(f"mul i64 {count}, {2 if self.complex else 1}")
        w.put(f"store double {ZERO}, ptr %sum, align 8")
        with each(w, "0", parts) as i:
            nothing = w.op(f"fmul double {self.load(area, i, 'double')}, {ZERO}")
            so_far = w.op("load double, ptr %sum, align 8")
            w.put(f"store double {w.op(f'fadd double {so_far}, {nothing}')}, ptr %sum, align 8")
        self.unsolved_if(w.op(f"fcmp uno double {w.op('load double, ptr %sum, align 8')}, {ZERO}"))

    # The whole.

    def module(
        self, symbol: str, body: str, inputs: int, outputs: int, params: Sequence[str]
    ) -> str:
        """The module, with `body` for each matrix. `params` are the names of its words; those that
        end in `.area` are offsets of scratch memory, those of `%x0` and its like come first."""
        matrices = [f"x{n}" for n in range(inputs)] + [f"y{n}" for n in range(outputs)]
        head = ""
        for n, name in enumerate((*matrices, "scratch")):
            head += f"  %{name}.row = getelementptr ptr, ptr %buffers, i64 {n}\n"
            head += f"  %{name}.all = load ptr, ptr %{name}.row, align 8\n"
        steps = [f"{name}.step" for name in matrices]
        for n, name in enumerate((*steps, "rest", *params)):
            head += f"  %{name}.at = getelementptr i64, ptr %params, i64 {n}\n"
            head += f"  %{name} = load i64, ptr %{name}.at, align 8\n"
            if name.endswith(".area"):
                area = name.removesuffix(".area")
                head += f"  %{area} = getelementptr i8, ptr %scratch.all, i64 %{name}\n"
        begin = "".join(
            f"  %{name}.offset = mul i64 %row, %{name}.step\n"
            f"  %{name} = getelementptr i8, ptr %{name}.all, i64 %{name}.offset\n"
            for name in matrices
        )
        polls = len(matrices) + 1
        text = (
            self._transposing()
            + f"""
define dso_local i32 @{symbol}(
  ptr %buffers, ptr %params, i64 %low, i64 %high) nounwind {{
entry:
  %info = alloca i64, align 8
  %sum = alloca double, align 8
{head}  br label %head
head:
  %row = phi i64 [ %low, %entry ], [ %row.more, %done ], [ %row.more, %poll ], [ %row.more, %ask ]
  %on = icmp slt i64 %row, %high
  br i1 %on, label %begin, label %end
begin:
{begin}  br label %matrix
{body}  br label %done
done:
  %row.more = add i64 %row, 1
  %past = and i64 %row.more, %rest
  %due = icmp eq i64 %past, 0
  br i1 %due, label %poll, label %head
poll:
  %poll.at = getelementptr ptr, ptr %buffers, i64 {polls}
  %poll.run = load ptr, ptr %poll.at, align 8
  %nobody = icmp eq ptr %poll.run, null
  br i1 %nobody, label %head, label %ask
ask:
  %given.at = getelementptr ptr, ptr %buffers, i64 {polls + 1}
  %given = load ptr, ptr %given.at, align 8
  %answer = call i32 %poll.run(ptr %given)
  %stop = icmp ne i32 %answer, 0
  br i1 %stop, label %stopped, label %head
end:
  ret i32 0
stopped:
  ret i32 {STOPPED}
}}
"""
        )
        return join([Fragment((*_NEEDS, *sorted(self.w.declared)), text)])

    def _transposing(self) -> str:
        """What takes matrices from memory to an area, and back."""
        made = ""
        for name, source, target in (
            ("take", self.element, self.wide), ("give", self.wide, self.element)
        ):  # fmt: skip
            w = Writer(self.w.target)
            with each(w, "0", "%rows", _TILE) as i, each(w, "0", "%columns", _TILE) as j:
                ends = []
                for first, most in ((i, "%rows"), (j, "%columns")):
                    far = w.op(f"add i64 {first}, {_TILE}")
                    ends.append(w.op(f"call i64 @llvm.smin.i64(i64 {far}, i64 {most})"))
                with each(w, i, ends[0]) as row, each(w, j, ends[1]) as column:
                    line = w.op(f"add i64 {w.op(f'mul i64 {row}, %columns')}, {column}")
                    place = w.op(f"getelementptr {source}, ptr %from, i64 {line}")
                    value = w.op(f"load {source}, ptr {place}, align 4")
                    if source != target:
                        change = "fpext" if target == self.wide else "fptrunc"
                        value = w.op(f"{change} {source} {value} to {target}")
                    line = w.op(f"add i64 {w.op(f'mul i64 {column}, %rows')}, {row}")
                    place = w.op(f"getelementptr {target}, ptr %to, i64 {line}")
                    w.put(f"store {target} {value}, ptr {place}, align 4")
            made += f"""
define internal void @tn_{name}(ptr %from, ptr %to, i64 %rows, i64 %columns) nounwind {{
entry:
{w.taken()}  ret void
}}
"""
        return made
