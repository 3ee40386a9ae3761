"""From a disagreement to its cause: bisection, smaller cases, scripts."""
