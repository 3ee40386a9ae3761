"""The prover from Python: knowledge-graph queries evaluated by proof search (docs/prover.md).

>>> from tenfold import prover
>>> made = prover.evaluate("family:families=2", modes=("tail",))
>>> round(made.metrics["both"].mrr["realistic"], 3)
0.888
"""

from tenfold.apps.prover.api import (
    Answer,
    Dataset,
    Evaluation,
    Explanation,
    Metrics,
    Provenance,
    Settings,
    evaluate,
    explain,
    load,
)

__all__ = [
    "Answer",
    "Dataset",
    "Evaluation",
    "Explanation",
    "Metrics",
    "Provenance",
    "Settings",
    "evaluate",
    "explain",
    "load",
]
