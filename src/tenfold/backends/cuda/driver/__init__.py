"""CUDA's driver: all that is used of it, through libcuda by ctypes and nothing else."""
