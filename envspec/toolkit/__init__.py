"""The CUDA toolkit that the JIT compilers see: one tree, laid out as they expect it."""
