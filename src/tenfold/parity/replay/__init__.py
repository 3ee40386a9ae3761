"""A plan carried out beside the reference, on real and on drawn values."""
