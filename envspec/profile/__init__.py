"""Profiles: what the user asked for, read strictly from TOML into frozen values."""

from envspec.profile.model import CudaRequest, Gpu, Index, PackageRequest, Profile, PythonRequest
from envspec.profile.read import read_profile

__all__ = ["CudaRequest", "Gpu", "Index", "PackageRequest", "Profile", "PythonRequest", "read_profile"]
