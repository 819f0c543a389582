"""The environment that JIT compilers need, as a script to source and as a mapping for a child process.

Both are made from one list of settings: `settings_of` says what is set, `render` writes it down for a shell and
`environment` computes it. Everything in a setting is relative to the generation that the script lies in, so
that the same profile renders the same bytes on every machine.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from envspec.activation.values import ScriptValues
from envspec.data.jit_variables import Consumer, Kind, consumers
from envspec.data.reserved_variables import _CLEARED, _JOBS


class Base(str, Enum):
    """What a path of a setting is relative to."""

    NONE = ""
    GENERATION = "generation"
    STATE = "state"
    """The directory that holds generations, toolchains and caches."""


class Value(msgspec.Struct, frozen=True):
    """A text, put behind one of the places that are known only on the machine."""

    text: str
    base: Base = Base.NONE


class Setting(msgspec.Struct, frozen=True):
    """One variable that gets a value."""

    name: str
    value: Value


class PathList(msgspec.Struct, frozen=True):
    """One variable whose list gets new elements in front."""

    name: str
    front: tuple[Value, ...]
    without_stubs: bool = False
    """Inherited directories of driver stubs are left out, too."""


class _Settings(msgspec.Struct, frozen=True):
    lists: tuple[PathList, ...]
    plain: tuple[Setting, ...]
    cleared: tuple[str, ...]
    computed: str

    @property
    def names(self) -> tuple[str, ...]:
        """Every variable that is touched, sorted."""
        lists, plain = (entry.name for entry in self.lists), (setting.name for setting in self.plain)
        return tuple(sorted((*lists, *plain, *self.cleared, self.computed)))


TOOLCHAIN = "/toolchains/"


def settings_of(values: ScriptValues) -> _Settings:
    cuda = TOOLCHAIN + values.toolchain
    venv = "/venv"
    libraries = (f"{venv}/{values.site_packages}/{directory}" for directory in values.library_dirs)
    lists = (
        PathList("PATH", (Value(f"{venv}/bin", Base.GENERATION), Value(f"{cuda}/bin", Base.STATE))),
        # The stub must never be found by the loader: it would be taken for the driver.
        PathList(
            "LD_LIBRARY_PATH",
            (
                Value(f"{cuda}/lib64", Base.STATE),
                *(Value(directory, Base.GENERATION) for directory in libraries),
            ),
            without_stubs=True,
        ),
        PathList(
            "LIBRARY_PATH",
            (Value(f"{cuda}/lib64", Base.STATE), Value(f"{cuda}/lib64/stubs", Base.STATE)),
        ),
    )
    plain = {
        "CUDA_HOME": Value(cuda, Base.STATE),
        "CUDA_PATH": Value(cuda, Base.STATE),
        "VIRTUAL_ENV": Value(venv, Base.GENERATION),
        "VIRTUAL_ENV_PROMPT": Value(values.prompt),
        **{row.variable: _consumer_value(row, values) for row in consumers()},
        # Last: a user may point a cache elsewhere.
        **{name: Value(value) for name, value in values.variables},
    }
    return _Settings(
        lists=lists,
        plain=tuple(Setting(name, plain[name]) for name in sorted(plain)),
        cleared=_CLEARED,
        computed=_JOBS,
    )


def _consumer_value(row: Consumer, values: ScriptValues) -> Value:
    if row.kind is Kind.ARCH_LIST:
        forms = {
            "{dotted}": values.arch,
            "{number}": values.arch_number,
            "{torch}": values.arch.removesuffix("f"),
        }
        text = row.value
        for form, value in forms.items():
            text = text.replace(form, value)
        return Value(text)
    if row.kind is Kind.CACHE_DIR:
        return Value(f"/jit/{values.toolchain}/{row.value}", Base.STATE)
    return Value(f"{TOOLCHAIN}{values.toolchain}/{row.value}", Base.STATE)
