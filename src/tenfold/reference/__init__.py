"""The reference: what programs mean, told by NumPy, one node after another."""

from tenfold.reference.callbacks import Callbacks
from tenfold.reference.evaluate import Watch, evaluate

__all__ = ["Callbacks", "Watch", "evaluate"]
