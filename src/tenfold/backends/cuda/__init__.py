"""The CUDA backend: the same kernels as the CPU's, printed as LLVM IR for NVIDIA's GPUs.

`schedule` says how a kernel's axes are laid over blocks and threads, `emit` writes it as LLVM IR,
`compile` makes PTX of that and, where there is an assembler, machine code. `driver` is all of CUDA
that is used, through libcuda alone. `run` binds a plan to a device and replays it.
"""
