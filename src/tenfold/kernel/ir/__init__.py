"""The data of kernels: axes, buffers, instructions, indices, and the builder."""
