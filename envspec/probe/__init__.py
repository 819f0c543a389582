"""`envspec probe`: does every JIT compiler of this environment compile and link, now, here?

    rows      data/probes.toml   what there is to compile, and what it needs
    scripts/  Python             run in the environment's own interpreter, with caches that are thrown away
    running   processes          as many at a time as memory and processors carry

Without a GPU this proves the toolchain. With one of the environment's architecture the scripts also run what they
compiled, capture it in a CUDA graph, replay it and compare the results.
"""
