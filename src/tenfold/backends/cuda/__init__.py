"""The CUDA backend: the same kernels as the CPU's, printed as LLVM IR for NVIDIA's GPUs.

`emit` lays a kernel's axes over blocks and threads and writes it as LLVM IR, `compile` makes PTX of
that, `assemble` machine code where there is an assembler. `driver` is all of CUDA that is used,
through libcuda alone. `run` binds a plan to a device and carries it out; `code` is what is kept of
that, `offline` what there is of it without a GPU. `array` has arrays that stay on the device.
"""
