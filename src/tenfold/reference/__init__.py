"""The reference: what programs mean, told by NumPy, one node after another."""

from tenfold.reference.callbacks import Callbacks
from tenfold.reference.evaluate import Watch, evaluate
from tenfold.reference.watch import Record, Values, watch_values

__all__ = ["Callbacks", "Record", "Values", "Watch", "evaluate", "watch_values"]
