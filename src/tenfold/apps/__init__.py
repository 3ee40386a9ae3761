"""Applications: programs written with the public `tenfold` only."""
