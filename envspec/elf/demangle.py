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
# The qualifiers of a method: const, volatile, restrict; & and &&.
_METHOD = re.compile(r"_ZN([rVK]*)([RO]?)(?=[\dS])")
_SUFFIX = {"int": "", "unsigned int": "u", "long": "l", "unsigned long": "ul"}
_LITERAL = re.compile(r"\((bool|int|unsigned int|long|unsigned long)\)(n?)(\d+)")
# Vector functions (_ZGVdN4v_cos) look like the guards of C++ statics and are not.
_VECTOR = re.compile(r"_ZGV[a-z]")


@lru_cache(maxsize=4096)
def demangle(name: str | bytes) -> str:
    """Return the declaration that the mangled `name` stands for; the name itself if it is not C++ or not understood.

    Bytes are taken as UTF-8, undecodable ones replaced. Never raises; time and result are bounded.
    """
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    if not text.startswith("_Z") or len(text) > _MAX_LENGTH:
        return text
    if _VECTOR.match(text) or len(_REFERENCE.findall(text)) > _MAX_REFERENCES:
        return text
    # The library puts a method's qualifiers in the wrong place and loses its template arguments over them.
    # They count for no substitution, so they can be taken out before and put behind after.
    method = _METHOD.match(text)
    plain = "_ZN" + text[method.end() :] if method else text
    # Imported here: most runs demangle nothing.
    import itanium_demangler

    try:
        parsed = str(itanium_demangler.parse(plain) or "")
    except Exception:  # noqa: BLE001 - the library raises whatever a strange name leads it into
        return text
    # A node without a written form shows as its repr, an unresolved reference in braces.
    if not parsed or len(parsed) > _MAX_RESULT or "Node " in parsed or "{T" in parsed or "{S" in parsed:
        return text
    return _in_cxx_words(parsed) + (_qualifiers(*method.groups()) if method else "")


def _qualifiers(cv: str, reference: str) -> str:
    words = [word for letter, word in (("K", "const"), ("V", "volatile"), ("r", "restrict")) if letter in cv]
    words += [{"R": "&", "O": "&&"}[reference]] if reference else []
    return "".join(f" {word}" for word in words)


def _in_cxx_words(parsed: str) -> str:
    """Write constructors and plain literals as C++ does."""
    found = _STRUCTOR.search(parsed)
    if found:
        tilde = "~" if found[1] == "dtor" else ""
        scope = parsed[: found.start()]
        parsed = f"{scope}::{tilde}{_last_class(scope)}{parsed[found.end() :]}"
    return _LITERAL.sub(_literal, parsed).replace("volatile const", "const volatile")


def _literal(match: re.Match[str]) -> str:
    kind, minus, digits = match.groups()
    if kind == "bool":
        return "false" if digits == "0" else "true"
    return ("-" if minus else "") + digits + _SUFFIX[kind]


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
