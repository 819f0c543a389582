"""Which codes the source uses, read from its syntax trees: what the table of codes is compared with."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import envspec
from envspec.data import load_table
from envspec.report import os_errors
from envspec.uv.run import UvErrorRow

PACKAGE = Path(envspec.__file__).parent
_ERRORS = {"EnvspecError", "UsageError", "ExternalError", "StageError", "FailedReport", "__init__"}
_FINDINGS = {"error", "warning", "note", "unknown", "_finding"}
_CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def raised_codes() -> set[str]:
    """Every code of an EnvspecError: literal, by keyword, by default, and from the two tables that hold codes."""
    found = {row.code for row in load_table("uv_errors", UvErrorRow)}
    found |= {code for code, _, _ in os_errors._KNOWN.values()}
    for path in sorted(PACKAGE.rglob("*.py")):
        if (
            "elf" not in path.relative_to(PACKAGE).parts
        ):  # what the ELF reader raises becomes evidence of a finding
            found |= _literals(ast.parse(path.read_text(encoding="utf-8")), _ERRORS)
    return found


def finding_codes() -> set[str]:
    """Every code of a finding that is written where the finding is made."""
    found: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node) in _FINDINGS and node.args:
                found |= _texts(node.args[0])
            elif isinstance(node, ast.Call) and _name(node) == "Finding":
                found |= {text for word in node.keywords if word.arg == "code" for text in _texts(word.value)}
    return found


def texts() -> set[str]:
    """Every text in the source that could be a code."""
    sources = (ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py"))
    return {
        text
        for tree in sources
        for node in ast.walk(tree)
        if isinstance(node, ast.expr)
        for text in _texts(node)
    }


def _literals(tree: ast.AST, names: set[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if (_name(node) in names or _name(node) == "_run") and node.args:
                found |= _texts(node.args[0])
            for keyword in node.keywords:
                if keyword.arg == "code":
                    found |= _texts(keyword.value)
        elif isinstance(node, ast.FunctionDef):
            for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
                if argument.arg == "code" and default is not None:
                    found |= _texts(default)
        elif isinstance(node, ast.Assign) and "code" in {
            t.id for target in node.targets for t in ast.walk(target) if isinstance(t, ast.Name)
        }:
            found |= _defaults(node.value)
    return found


def _defaults(value: ast.expr) -> set[str]:
    """`code, what, fix = _KNOWN.get(errno, ("os-error", ...))`: the code of the fallback."""
    return {text for node in ast.walk(value) if isinstance(node, ast.Tuple) for text in _texts(node.elts[0])}


def _name(call: ast.Call) -> str:
    function = call.func
    return (
        function.id
        if isinstance(function, ast.Name)
        else function.attr
        if isinstance(function, ast.Attribute)
        else ""
    )


def _texts(node: ast.expr) -> set[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CODE.fullmatch(node.value):
        return {node.value}
    return set()
