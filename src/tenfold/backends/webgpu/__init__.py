"""The WebGPU backend: the planner's kernels printed as WGSL, and run by wgpu-native through Vulkan,
Metal or Direct3D 12.

`target` is an adapter and how its driver computes, `native` the library's C interface, `probe` asks
an adapter what no list of features says, `emit` prints kernels, `run` binds plans and carries them
out. docs/webgpu.md is for users.
"""
