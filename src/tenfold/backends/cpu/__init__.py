"""The CPU: code through LLVM, loaded and called natively.

Code is made for a level of the processor (`backends/cpu/target`): x86-64, x86-64-v2, x86-64-v3
(AVX2 and fma) or x86-64-v4 (AVX-512), with what the machine has beyond it. `TENFOLD_TARGET` asks
for a lesser level than the machine's, kernels, gate, steps and sorts alike; one that it can't
execute is an error. The library's products choose for themselves. The level is part of every key
of the cache and of every certificate; of a file's code, what is for a better level is left alone.
`tn.backends()` says which level is in use, and why. `make test` tries kernels and random programs
for every level that the machine can execute.
"""
