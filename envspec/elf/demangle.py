"""stub"""
from __future__ import annotations
def demangle(name: bytes | str) -> str: return str(name)
