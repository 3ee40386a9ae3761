"""vmap of random numbers: each lane draws what it would draw alone."""

import numpy as np
import pytest

import tenfold as tn

KEYS = np.asarray(tn.random.split(tn.random.key(7), 5))


@pytest.mark.parametrize("name", ["bits", "uniform", "normal", "exponential", "gamma"])
def test_lanes_draw_as_alone(name):
    def draw(key):
        return (
            tn.random.gamma(key, 2.5, (3,))
            if name == "gamma"
            else getattr(tn.random, name)(key, (3,))
        )

    alone = np.stack([np.asarray(tn.jit(draw, compile="never")(key)) for key in KEYS])
    together = tn.jit(tn.vmap(draw), compile="never")(KEYS)
    np.testing.assert_array_equal(np.asarray(together), alone)
