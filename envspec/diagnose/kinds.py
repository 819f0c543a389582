"""The kinds of evidence: who reports a failure decides how much its words tell."""

from __future__ import annotations

from enum import Enum


class Kind(str, Enum):
    """Names the kinds of evidence, by who reports them."""

    COMPILER = "compiler"
    LINKER = "linker"
    LOADER = "loader"
    TOOLCHAIN = "toolchain"
    SHELL = "shell"
    DRIVER = "driver"
    CUDA = "cuda"
    MEMORY = "memory"
    RESOLVER = "resolver"
    INSTALLER = "installer"
    NETWORK = "network"
    FILESYSTEM = "filesystem"
    COMMUNICATION = "communication"
    MODEL = "model"
    CONFIGURATION = "configuration"
    CRASH = "crash"
    PYTHON = "python"
    MESSAGE = "message"
