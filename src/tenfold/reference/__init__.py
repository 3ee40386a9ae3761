"""The reference: what programs mean, told by NumPy, one node after another."""

from tenfold.reference.callbacks import Callbacks
from tenfold.reference.evaluate import Watch, evaluate
from tenfold.reference.watch import Record, Values, watch_values
from tenfold.trace import eager

__all__ = ["Callbacks", "Record", "Values", "Watch", "evaluate", "watch_values"]

# Control flow and effects outside any trace run here.
eager.use(lambda graph, arguments, callables: evaluate(graph, arguments, Callbacks(callables)))
