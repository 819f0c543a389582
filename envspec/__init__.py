"""envspec turns a TOML profile into a reproducible Python environment for GPUs whose kernels are compiled on the spot."""

__version__ = "0.1.0"
