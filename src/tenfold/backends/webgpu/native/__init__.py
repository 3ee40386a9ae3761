"""wgpu-native, all that is used of it, by its C interface alone: none of the classes of the Python
package that brings the library stands in a call.

`find` looks for the library, `library` loads it, `structs` is what its functions are given,
`adapter` finds GPUs, `device` has memory, shaders and the queue, `commands` what is sent to it.
"""
