"""The text of native entries: what is compiled once, and launches the graph of every plan."""

from tenfold.backends.cpu.entry.distinct import DISTINCT
from tenfold.backends.cpu.entry.pool import POOL
from tenfold.backends.cpu.entry.release import DROP, RUN
from tenfold.backends.cpu.entry.watch import WATCH
from tenfold.backends.cpu.entry.write_back import WRITE_BACK
from tenfold.backends.cuda.entry.copying import COPY_PART
from tenfold.backends.cuda.entry.gate import KEPT_GATE
from tenfold.backends.cuda.entry.launch import LAUNCH
from tenfold.backends.cuda.entry.plans import PLANS
from tenfold.backends.llvm.text import join

ENTRY_TEXT = join(
    [LAUNCH, PLANS, POOL, DISTINCT, RUN, DROP, WRITE_BACK, *KEPT_GATE, WATCH, COPY_PART]
)
