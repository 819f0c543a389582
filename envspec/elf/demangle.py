"""C++ names for people: Itanium-mangled names written as declarations.

The parser is the `itanium-demangler` library. It knows no lambdas, local classes or decltypes (4 % of torch's
names), and its time and output can double with each substitution of a hostile name; names beyond what real
ones need, and names it does not know, are returned as they are.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Of 100,000 names that torch exports, 99.4 % stay below both. The largest expansion that 24 references
# allow is 3^8 times the name.
_MAX_LENGTH = 2048
_MAX_REFERENCES = 24
_MAX_RESULT = 65536
_REFERENCE = re.compile(r"[ST][0-9A-Z]*_")
_STRUCTOR = re.compile(r"::\{(?:(?:base|complete|allocating|deleting) )?(ctor|dtor)\}")
_LITERAL = re.compile(r"\((bool|int)\)(n?)(\d+)")


@lru_cache(maxsize=4096)
def demangle(name: str | bytes) -> str:
    """The declaration that the mangled `name` stands for; the name itself if it is not C++ or not understood.

    Bytes are taken as UTF-8, undecodable ones replaced. Never raises; time and result are bounded.
    """
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    if not text.startswith("_Z") or len(text) > _MAX_LENGTH:
        return text
    if len(_REFERENCE.findall(text)) > _MAX_REFERENCES:
        return text
    # Imported here: most runs demangle nothing.
    import itanium_demangler

    try:
        parsed = str(itanium_demangler.parse(text) or "")
    except Exception:  # noqa: BLE001 - the library raises whatever a strange name leads it into
        return text
    # A node without a written form shows as its repr, an unresolved reference in braces.
    if not parsed or len(parsed) > _MAX_RESULT or "Node " in parsed or "{T" in parsed or "{S" in parsed:
        return text
    return _in_cxx_words(parsed, const_method=text.startswith("_ZNK"))


def _in_cxx_words(parsed: str, *, const_method: bool) -> str:
    """Write constructors, const methods and plain literals as C++ does."""
    found = _STRUCTOR.search(parsed)
    if found:
        tilde = "~" if found[1] == "dtor" else ""
        scope = parsed[: found.start()]
        parsed = f"{scope}::{tilde}{_last_class(scope)}{parsed[found.end() :]}"
    if const_method:
        at = _outside_brackets(parsed, " const(")
        if at >= 0:
            parsed = parsed[:at] + parsed[at + len(" const") :] + " const"
    return _LITERAL.sub(_literal, parsed).replace("volatile const", "const volatile")


def _literal(match: re.Match[str]) -> str:
    kind, minus, digits = match.groups()
    if kind == "bool":
        return "false" if digits == "0" else "true"
    return ("-" if minus else "") + digits


def _last_class(scope: str) -> str:
    """The innermost class name of `scope`, without its template arguments."""
    end = len(scope)
    if scope.endswith(">"):
        depth = 0
        while end:
            end -= 1
            depth += {">": 1, "<": -1}.get(scope[end], 0)
            if depth == 0:
                break
    start = end
    while start and (scope[start - 1].isalnum() or scope[start - 1] == "_"):
        start -= 1
    return scope[start:end]


def _outside_brackets(text: str, wanted: str) -> int:
    """Where `wanted` first stands outside of template arguments; -1 if nowhere."""
    depth = 0
    for at, letter in enumerate(text):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if depth <= 0 and text.startswith(wanted, at):
            return at
    return -1
