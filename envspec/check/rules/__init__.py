"""The rules of `check`, a module a topic. They are given facts, and know no files and no network."""

from __future__ import annotations

from envspec.report.rules import RuleSet

RULES = RuleSet(
    __name__,
    (
        "toolkit",
        "cuda_libraries",
        "compilers",
        "abi",
        "platform",
        "companions",
        "files",
        "driver",
        "provenance",
    ),
)
