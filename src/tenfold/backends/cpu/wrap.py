"""Print the entry point of a plan as LLVM IR.

The text holds no address: types, dtypes and NumPy's functions are imports, found at load, and what
belongs to one binding lies in two tables of data, `.binding` and `.pool`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tenfold.backends.cpu import ndarray as nd
from tenfold.backends.cpu.poll import DONE, FAILED, STATE_WORDS
from tenfold.backends.cpu.text import Fragment
from tenfold.types import SHORT, TensorType

RUN, BINDING, POOL = ".run", ".binding", ".pool"  # beside the entry's own name

POOL_SLOTS = 8  # arenas kept for later calls; more may be in use at once
STACK_ARENA = 8192  # an arena up to this size lies on the stack


@dataclass(frozen=True, slots=True)
class Argument:
    """One positional argument. `writeable`: the plan writes into it."""

    type: TensorType
    writeable: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """All that the entry point of a plan depends on; with the plan's name, its whole description.

    `guards` has "dict" or "cell" for each place whose object is to be the one bound.
    `packed`: one output comes in a tuple too. `release`: let other Python threads run meanwhile.
    """

    name: str
    plan: str
    arguments: tuple[Argument, ...]
    outputs: tuple[TensorType, ...]
    captures: int = 0
    guards: tuple[str, ...] = ()
    arena_bytes: int = 0
    packed: bool = False
    release: bool = False

    @property
    def pooled(self) -> bool:
        return self.arena_bytes > STACK_ARENA

    @property
    def exports(self) -> tuple[str, ...]:
        """The names to ask the loader for."""
        names = (self.name, self.name + RUN, self.name + BINDING)
        return (*names, self.name + POOL) if self.pooled else names

    @property
    def table_size(self) -> int:
        return len(self.arguments) + self.captures + len(self.outputs)


_LIKELY = '!prof !{!"branch_weights", i32 2000, i32 1}'
_DECLARATIONS = (
    "@tn_ndarray = external global i8",
    "declare ptr @tn_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)",
    "declare ptr @tn_new_scalar(ptr, ptr, ptr)",
    "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
    "declare ptr @PyDict_GetItemWithError(ptr, ptr)",
    "declare ptr @PyErr_Occurred()",
    "declare ptr @PyErr_NoMemory()",
    "declare ptr @PyTuple_New(i64)",
    "declare i32 @PyTuple_SetItem(ptr, i64, ptr)",
    "declare void @Py_IncRef(ptr)",
    "declare void @Py_DecRef(ptr)",
    "declare ptr @PyEval_SaveThread()",
    "declare void @PyEval_RestoreThread(ptr)",
    "declare ptr @aligned_alloc(i64, i64)",
    "declare void @free(ptr)",
)


def wrap(entry: Entry) -> Fragment:
    """The entry point's text. The module it joins, or another object, defines the plan."""
    types = (*(argument.type for argument in entry.arguments), *entry.outputs)
    shorts = dict.fromkeys(SHORT[type.dtype] for type in types)
    imports = [
        f"@tn_{kind}_{short} = external global i8"
        for short in shorts
        for kind in ("dtype", "scalar")
    ]
    plan = f'declare i32 @"{entry.plan}"(ptr, ptr, ptr)'
    pool = _pool(entry) if entry.pooled else ""
    body = [_data(entry), _run(entry), pool, _drop(entry), _call(entry)]
    return Fragment((*_DECLARATIONS, *imports, plan), "\n".join(body))


def _data(entry: Entry) -> str:
    tables = {BINDING: 1 + 3 * len(entry.guards) + entry.captures}
    if entry.pooled:
        tables[POOL] = POOL_SLOTS
    lines = [
        f'@"{entry.name}{part}" = dso_local global [{size} x ptr] zeroinitializer, align 64'
        for part, size in tables.items()
    ]
    for index, type in enumerate(entry.outputs):
        if type.rank:
            dims = ", ".join(f"i64 {extent}" for extent in type.shape)
            lines.append(
                f'@"{entry.name}.dims{index}" = private constant [{type.rank} x i64] [{dims}]'
            )
    return "\n".join(lines)


def _run(entry: Entry) -> str:
    """The plan with the GIL given up, where it is long enough for that; called with it held."""
    call = f'%code = call i32 @"{entry.plan}"(ptr %table, ptr %arena, ptr %poll)'
    lines = [
        f'define dso_local i32 @"{entry.name}{RUN}"(ptr %table, ptr %arena, ptr %poll) nounwind {{'
    ]
    if entry.release:
        lines += [
            "  %thread = call ptr @PyEval_SaveThread()",
            f"  {call}",
            "  call void @PyEval_RestoreThread(ptr %thread)",
        ]
    else:
        lines.append(f"  {call}")
    return "\n".join([*lines, "  ret i32 %code", "}", ""])


def _pool(entry: Entry) -> str:
    """Take and give an arena: each slot of the pool is swapped at once, so nothing ever waits."""
    pool = f'@"{entry.name}{POOL}"'
    size = (entry.arena_bytes + 63) & -64
    return f"""
define internal ptr @"{entry.name}.take"() nounwind {{
begin:
  br label %try
try:
  %i = phi i64 [ 0, %begin ], [ %next, %empty ]
  %slot = getelementptr ptr, ptr {pool}, i64 %i
  %arena = atomicrmw xchg ptr %slot, ptr null acq_rel
  %none = icmp eq ptr %arena, null
  br i1 %none, label %empty, label %found
found:
  ret ptr %arena
empty:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {POOL_SLOTS}
  br i1 %more, label %try, label %fresh
fresh:
  %new = call ptr @aligned_alloc(i64 64, i64 {size})
  ret ptr %new
}}

define internal void @"{entry.name}.give"(ptr %arena) nounwind {{
begin:
  br label %try
try:
  %i = phi i64 [ 0, %begin ], [ %next, %full ]
  %slot = getelementptr ptr, ptr {pool}, i64 %i
  %pair = cmpxchg ptr %slot, ptr null, ptr %arena acq_rel monotonic
  %stored = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %stored, label %done, label %full
full:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {POOL_SLOTS}
  br i1 %more, label %try, label %drop
drop:
  call void @free(ptr %arena)
  ret void
done:
  ret void
}}
"""


def _call(entry: Entry) -> str:
    """The function CPython calls: guards, outputs, the plan, and the answer."""
    lines = [
        f'define dso_local ptr @"{entry.name}"'
        "(ptr %self, ptr %args, i64 %nargs, ptr %names) nounwind {",
        f"  %table = alloca [{max(entry.table_size, 1)} x ptr], align 16",
        f"  %made = alloca [{max(len(entry.outputs), 1)} x ptr], align 16",
        f"  %poll = alloca [{STATE_WORDS} x i64], align 16",
    ]
    if 0 < entry.arena_bytes <= STACK_ARENA:
        lines.append(f"  %stack = alloca [{entry.arena_bytes} x i8], align 64")
    for index, type in enumerate(entry.outputs):
        if type.rank == 0:  # becomes a scalar in the end, and lies on the stack until then
            lines.append(f"  %o{index} = alloca [16 x i8], align 16")
    for table, size in (("%table", entry.table_size), ("%made", len(entry.outputs))):
        lines += [f"  {table}{i} = getelementptr ptr, ptr {table}, i64 {i}" for i in range(size)]
    lines += [
        f"  %count = icmp eq i64 %nargs, {len(entry.arguments)}",
        "  %plain = icmp eq ptr %names, null",
        "  %fits = and i1 %count, %plain",
        f"  br i1 %fits, label %argument0, label %slow, {_LIKELY}",
    ]
    for index, argument in enumerate(entry.arguments):
        lines += _argument(index, argument)
    lines += [f"argument{len(entry.arguments)}:", "  br label %guard0"]
    for index, kind in enumerate(entry.guards):
        lines += _guard(entry, index, kind)
    lines.append(f"guard{len(entry.guards)}:")
    lines += _captures(entry)
    lines += _outputs(entry)
    lines += _invoke(entry)
    lines += _answer(entry)
    lines += _ends(entry)
    return "\n".join(lines)


def _field(name: str, kind: str, base: str, offset: int) -> list[str]:
    return [
        f"  {name}.at = getelementptr i8, ptr {base}, i64 {offset}",
        f"  {name} = load {kind}, ptr {name}.at, align {4 if kind == 'i32' else 8}",
    ]


def _argument(index: int, argument: Argument) -> list[str]:
    """Guard one argument in its own fields, and put its data into the table."""
    type, a = argument.type, f"%a{index}"
    short = SHORT[type.dtype]
    flags = nd.CONTIGUOUS | nd.ALIGNED | (nd.WRITEABLE if argument.writeable else 0)
    # A NumPy scalar may stand for an array of no axes: plans hand scalars out, so they get them.
    scalar = type.rank == 0 and not argument.writeable
    other = f"scalar{index}" if scalar else "slow"
    lines = [
        f"argument{index}:",
        *_field(a, "ptr", "%args", 8 * index),
        *_field(f"{a}.type", "ptr", a, nd.TYPE),
        f"  {a}.array = icmp eq ptr {a}.type, @tn_ndarray",
        f"  br i1 {a}.array, label %fields{index}, label %{other}, {_LIKELY}",
        f"fields{index}:",
        *_field(f"{a}.dtype", "ptr", a, nd.DESCR),
        *_field(f"{a}.flags", "i32", a, nd.FLAGS),
        *_field(f"{a}.rank", "i32", a, nd.RANK),
        *_field(f"{a}.own", "ptr", a, nd.DATA),
        f"  {a}.c0 = icmp eq ptr {a}.dtype, @tn_dtype_{short}",
        f"  {a}.set = and i32 {a}.flags, {flags}",
        f"  {a}.c1 = icmp eq i32 {a}.set, {flags}",
        f"  {a}.c2 = icmp eq i32 {a}.rank, {type.rank}",
        f"  {a}.c3 = and i1 {a}.c0, {a}.c1",
        f"  {a}.ok = and i1 {a}.c2, {a}.c3",
    ]
    if type.rank:
        lines += [
            f"  br i1 {a}.ok, label %dims{index}, label %slow, {_LIKELY}",
            f"dims{index}:",
            *_field(f"{a}.dims", "ptr", a, nd.DIMS),
        ]
        unequal = "0"
        for axis, extent in enumerate(type.shape):
            d = f"{a}.d{axis}"
            lines += [
                *_field(d, "i64", f"{a}.dims", 8 * axis),
                f"  {d}.x = xor i64 {d}, {extent}",
                f"  {d}.o = or i64 {d}.x, {unequal}",
            ]
            unequal = f"{d}.o"
        lines.append(f"  {a}.same = icmp eq i64 {unequal}, 0")
        lines.append(f"  br i1 {a}.same, label %data{index}, label %slow, {_LIKELY}")
    else:
        lines.append(f"  br i1 {a}.ok, label %data{index}, label %slow, {_LIKELY}")
    data = f"{a}.own"
    if scalar:
        data = f"{a}.data"
        lines += [
            f"scalar{index}:",
            f"  {a}.is = icmp eq ptr {a}.type, @tn_scalar_{short}",
            f"  {a}.value = getelementptr i8, ptr {a}, i64 {nd.SCALAR_VALUE}",
            f"  br i1 {a}.is, label %data{index}, label %slow, {_LIKELY}",
            f"data{index}:",
            f"  {data} = phi ptr [ {a}.own, %fields{index} ], [ {a}.value, %scalar{index} ]",
        ]
    else:
        lines.append(f"data{index}:")
    return [*lines, _store(data, f"%table{index}"), f"  br label %argument{index + 1}"]


def _store(value: str, slot: str) -> str:
    return f"  store ptr {value}, ptr {slot}, align 8"


def _guard(entry: Entry, index: int, kind: str) -> list[str]:
    """Look where an object is to be found, and compare it with the one bound."""
    binding, g = f'@"{entry.name}{BINDING}"', f"%g{index}"
    lines = [
        f"guard{index}:",
        *_field(f"{g}.where", "ptr", binding, 8 * (1 + 3 * index)),
        *_field(f"{g}.expected", "ptr", binding, 8 * (3 + 3 * index)),
    ]
    if kind == "cell":
        lines += _field(f"{g}.found", "ptr", f"{g}.where", nd.CELL_VALUE)
    else:
        lines += [
            *_field(f"{g}.key", "ptr", binding, 8 * (2 + 3 * index)),
            f"  {g}.found = call ptr @PyDict_GetItemWithError(ptr {g}.where, ptr {g}.key)",
        ]
    return [
        *lines,
        f"  {g}.same = icmp eq ptr {g}.found, {g}.expected",
        f"  br i1 {g}.same, label %guard{index + 1}, label %lost, {_LIKELY}",
    ]


def _captures(entry: Entry) -> list[str]:
    """Copy the captures' pointers, and keep their arrays alive: another thread may rebind."""
    if not entry.captures:
        return []
    binding = f'@"{entry.name}{BINDING}"'
    lines = [*_field("%held", "ptr", binding, 0), "  call void @Py_IncRef(ptr %held)"]
    for index in range(entry.captures):
        lines += _field(f"%k{index}", "ptr", binding, 8 * (1 + 3 * len(entry.guards) + index))
        lines.append(_store(f"%k{index}", f"%table{len(entry.arguments) + index}"))
    return lines


def _outputs(entry: Entry) -> list[str]:
    """Allocate the outputs."""
    first = len(entry.arguments) + entry.captures
    lines = [_store("null", f"%made{index}") for index in range(len(entry.outputs))]
    for index, type in enumerate(entry.outputs):
        o, dtype = f"%o{index}", f"@tn_dtype_{SHORT[type.dtype]}"
        if type.rank == 0:
            lines.append(_store(o, f"%table{first + index}"))
            continue
        dims = f'@"{entry.name}.dims{index}"'
        lines += [
            f"  call void @Py_IncRef(ptr {dtype})",  # the next call takes a reference
            f"  {o} = call ptr @tn_new_array(ptr @tn_ndarray, ptr {dtype}, i32 {type.rank}, "
            f"ptr {dims}, ptr null, ptr null, i32 0, ptr null)",
            f"  {o}.some = icmp ne ptr {o}, null",
            f"  br i1 {o}.some, label %have{index}, label %fail, {_LIKELY}",
            f"have{index}:",
            _store(o, f"%made{index}"),
            *_field(f"{o}.data", "ptr", o, nd.DATA),
            _store(f"{o}.data", f"%table{first + index}"),
        ]
    return lines


def _invoke(entry: Entry) -> list[str]:
    """Find an arena, run the plan, and give the arena back."""
    lines = [
        "  store i64 0, ptr %poll, align 8",
        "  %poll.next = getelementptr i64, ptr %poll, i64 1",
        "  store i64 0, ptr %poll.next, align 8",
    ]
    arena = "null"
    if entry.pooled:
        arena = "%arena"
        lines += [
            f'  %arena = call ptr @"{entry.name}.take"()',
            "  %arena.none = icmp eq ptr %arena, null",
            "  br i1 %arena.none, label %memory, label %run",
            "memory:",
            "  %nothing = call ptr @PyErr_NoMemory()",
            "  br label %fail",
            "run:",
        ]
    elif entry.arena_bytes:
        arena = "%stack"
    lines.append(f'  %code = call i32 @"{entry.name}{RUN}"(ptr %table, ptr {arena}, ptr %poll)')
    if entry.pooled:
        lines.append(f'  call void @"{entry.name}.give"(ptr %arena)')
    if entry.captures:
        lines.append("  call void @Py_DecRef(ptr %held)")
    return [
        *lines,
        "  switch i32 %code, label %decline "
        f"[ i32 {DONE}, label %answer i32 {FAILED}, label %drop ]",
    ]


def _answer(entry: Entry) -> list[str]:
    """Hand the outputs back."""
    count = len(entry.outputs)
    if count == 1 and not entry.packed:
        return ["answer:", *_item(entry, 0), "  ret ptr %item0"]
    lines = [
        "answer:",
        f"  %tuple = call ptr @PyTuple_New(i64 {count})",
        "  %tuple.some = icmp ne ptr %tuple, null",
        f"  br i1 %tuple.some, label %fill0, label %drop, {_LIKELY}",
    ]
    for index in range(count):
        lines += [
            f"fill{index}:",
            *_item(entry, index),
            f"  %some{index} = icmp ne ptr %item{index}, null",
            f"  br i1 %some{index}, label %put{index}, label %spill, {_LIKELY}",
            f"put{index}:",
            _store("null", f"%made{index}"),  # the tuple owns it now
            f"  %set{index} = call i32 @PyTuple_SetItem(ptr %tuple, i64 {index}, ptr %item{index})",
            f"  br label %fill{index + 1}",
        ]
    return [
        *lines,
        f"fill{count}:",
        "  ret ptr %tuple",
        "spill:",
        "  call void @Py_DecRef(ptr %tuple)",
        "  br label %drop",
    ]


def _item(entry: Entry, index: int) -> list[str]:
    """One output as Python gets it: an array, or like NumPy a scalar where it has no axes."""
    type = entry.outputs[index]
    if type.rank:
        return [f"  %item{index} = load ptr, ptr %made{index}, align 8"]
    dtype = f"@tn_dtype_{SHORT[type.dtype]}"
    return [f"  %item{index} = call ptr @tn_new_scalar(ptr %o{index}, ptr {dtype}, ptr null)"]


def _drop(entry: Entry) -> str:
    """Give up the outputs made so far. Py_DecRef takes null in its stride."""
    lines = [f'define internal void @"{entry.name}.drop"(ptr %made) nounwind cold {{']
    for index in range(len(entry.outputs)):
        lines += _field(f"%o{index}", "ptr", "%made", 8 * index)
        lines.append(f"  call void @Py_DecRef(ptr %o{index})")
    return "\n".join([*lines, "  ret void", "}", ""])


def _ends(entry: Entry) -> list[str]:
    """The ways out that are not an answer."""
    drop = f'  call void @"{entry.name}.drop"(ptr %made)'
    return [
        "fail:",  # before the plan ran: an exception is set
        *(["  call void @Py_DecRef(ptr %held)"] if entry.captures else []),
        "  br label %drop",
        "drop:",
        drop,
        "  ret ptr null",
        "decline:",
        drop,
        "  br label %slow",
        "lost:",  # a guard's lookup found another object, or nothing, or raised
        "  %raised = call ptr @PyErr_Occurred()",
        "  %clean = icmp eq ptr %raised, null",
        "  br i1 %clean, label %slow, label %error",
        "error:",
        "  ret ptr null",
        "slow:",
        "  %asked = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %names)",
        "  ret ptr %asked",
        "}",
    ]
