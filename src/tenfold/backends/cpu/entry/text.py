"""The text of the gate: what is compiled once, and enters every plan."""

from tenfold.backends.cpu.entry.dispatch import DISPATCH, PACK
from tenfold.backends.cpu.entry.distinct import DISTINCT
from tenfold.backends.cpu.entry.gate import GATE
from tenfold.backends.cpu.entry.handler import HANDLER
from tenfold.backends.cpu.entry.kept import KEPT
from tenfold.backends.cpu.entry.pool import POOL
from tenfold.backends.cpu.entry.release import DROP, RUN
from tenfold.backends.cpu.entry.watch import WATCH
from tenfold.backends.cpu.entry.write_back import WRITE_BACK
from tenfold.backends.llvm.text import join

GATE_TEXT = join(
    [KEPT, HANDLER, POOL, DISTINCT, RUN, DROP, WRITE_BACK, GATE, PACK, DISPATCH, WATCH]
)
