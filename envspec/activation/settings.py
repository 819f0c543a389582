"""The environment that JIT compilers need, as one list of settings.

The script (`script`) writes it down for a shell, and `process` computes the same for a child process. Everything in a setting
is relative to the generation that the script lies in, so that the same profile renders the same bytes on every machine.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from envspec.activation.values import ScriptValues
from envspec.data.jit_variables import Consumer, Kind, consumers

TOOLCHAINS = "/toolchains/"
"""Where the toolchains lie, relative to `Base.STATE`."""


class Base(str, Enum):
    """Says what a path of a setting is relative to."""

    NONE = ""
    GENERATION = "generation"
    STATE = "state"
    """The directory that holds generations, toolchains and caches."""


class Value(msgspec.Struct, frozen=True):
    """Holds a text, put behind one of the places that are known only on the machine."""

    text: str
    base: Base = Base.NONE


class Setting(msgspec.Struct, frozen=True):
    """Describes one variable that gets a value."""

    name: str
    value: Value


class PathList(msgspec.Struct, frozen=True):
    """Describes one variable whose list gets new elements in front."""

    name: str
    front: tuple[Value, ...]
    without_stubs: bool = False
    """Inherited directories of driver stubs are left out, too."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Holds everything that the script does to variables: lists it adds to, values it sets, variables it unsets.

    `computed` is the one whose value is counted on the machine, unless it is set already.
    """

    lists: tuple[PathList, ...]
    plain: tuple[Setting, ...]
    cleared: tuple[str, ...] = ("PYTHONHOME", "PYTHONPATH")
    """They would put other packages before the locked ones."""
    computed: str = "MAX_JOBS"

    @property
    def names(self) -> tuple[str, ...]:
        """Return every variable that is touched, sorted."""
        lists, plain = (entry.name for entry in self.lists), (setting.name for setting in self.plain)
        return tuple(sorted((*lists, *plain, *self.cleared, self.computed)))


def settings_of(values: ScriptValues) -> Settings:
    """Return what the script of these values does to variables."""
    cuda, venv = TOOLCHAINS + values.toolchain, "/venv"
    lib64, stubs = Value(f"{cuda}/lib64", Base.STATE), Value(f"{cuda}/lib64/stubs", Base.STATE)
    plain = {
        "CUDA_HOME": Value(cuda, Base.STATE),
        "CUDA_PATH": Value(cuda, Base.STATE),
        "VIRTUAL_ENV": Value(venv, Base.GENERATION),
        "VIRTUAL_ENV_PROMPT": Value(values.prompt),
        **{row.variable: _consumer_value(row, values) for row in consumers()},
        # Last: a user may point a cache elsewhere.
        **{name: Value(value) for name, value in values.variables},
    }
    return Settings(
        lists=(
            PathList("PATH", (Value(f"{venv}/bin", Base.GENERATION), Value(f"{cuda}/bin", Base.STATE))),
            # The stub must never be found by the loader: it would be taken for the driver.
            PathList("LD_LIBRARY_PATH", (lib64,), without_stubs=True),
            PathList("LIBRARY_PATH", (lib64, stubs)),
        ),
        plain=tuple(Setting(name, plain[name]) for name in sorted(plain)),
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
    return Value(f"{TOOLCHAINS}{values.toolchain}/{row.value}", Base.STATE)
