"""The CPU: code through LLVM, loaded and called natively."""
