"""Which symbol names are torch's own.

The rule is by namespace, not by the table of exports: torch's libraries also export what they were linked
with (std:: templates, fbgemm, protobuf, BLAS), which an extension may get from elsewhere. Of such a name
nobody can say that it is "missing from torch".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_TORCH = re.compile(
    rb"""
    _Z
    (?: T[VTISHW] | GV | GR | T[hv] n?\d+_ (?: n?\d+_ )? )?    # vtables, RTTI, guards, thunks of
    Z*                                                         # (things local to)
    N? [rVKRO]*
    (?: 2at | 3c10 | 4c10d | 5torch | 6caffe2 )                # things in these namespaces,
    | _Z \d+ THP                                               # functions of torch's Python binding,
    | THP (?! _Py )                                            # (not dynamo's copies of CPython internals,
                                                               # which differ between Python minors)
    | aoti_torch_ | torch_                  # and the C shims
    """,
    re.VERBOSE,
)

# torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h declare the stable C ABI;
# torch/csrc/stable and torch/headeronly are header-only C++ over it. An extension that keeps to them imports
# these C functions and nothing mangled. A release may add functions; it does not change those that are there.
_STABLE = re.compile(rb"(?:aoti_torch_|torch_)[A-Za-z0-9_]+\Z")


def torch_names(names: Iterable[bytes]) -> frozenset[bytes]:
    """Return those of the (mangled) `names` that only torch can define."""
    match = _TORCH.match
    return frozenset(name for name in names if match(name))


def is_stable_name(name: bytes) -> bool:
    """Tell whether `name` has the form of a function of torch's stable C ABI."""
    return _STABLE.match(name) is not None
