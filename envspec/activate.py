"""The environment that JIT compilers need, as a script to source and as a mapping for a child process.

Both are made from one list of settings: `_settings` says what is set, `render` writes it down for a shell and
`environment` computes it. Everything in a setting is relative to the generation that the script lies in, so
that the same profile renders the same bytes on every machine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path, PurePosixPath

import msgspec

from envspec.consumers import Consumer, Kind, consumers
from envspec.errors import UsageError
from envspec.jobs import HostFiles, max_jobs
from envspec.shipped import shipped

SCRIPT = "sglang_env.sh"


class ScriptValues(msgspec.Struct, frozen=True, kw_only=True):
    """What distinguishes one environment from another.

    `arch` is dotted with its suffix ("12.0a"); `site_packages` is relative to the venv, and each of
    `library_dirs` to it; `variables` are the user's own, in the profile's order; `prompt` is a name to show.
    """

    toolchain: str
    arch: str
    memory_per_job: int
    site_packages: str
    library_dirs: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    prompt: str = "envspec"

    def __post_init__(self) -> None:
        _require(re.fullmatch(r"[0-9a-f]{8,64}", self.toolchain), "toolchain", self.toolchain, "a hex digest")
        _require(re.fullmatch(r"[1-9][0-9]?\.[0-9][af]?", self.arch), "arch", self.arch, "like 12.0a")
        _require(
            0 < self.memory_per_job < 2**62, "memory_per_job", str(self.memory_per_job), "a positive number"
        )
        for key, path in (
            ("site_packages", self.site_packages),
            *(("library_dirs", path) for path in self.library_dirs),
        ):
            _require(_stays_below(path), key, path, "a relative path without '..', ':' or control characters")
        _require(_writable(self.prompt), "prompt", self.prompt, "text without NUL")
        seen: set[str] = set()
        for name, value in self.variables:
            where = f"environment.{name}"
            _require(settable(name), where, name, "a variable that neither envspec nor the shell owns")
            _require(name not in seen, where, name, "set once")
            _require(_writable(value), where, value, "text without NUL")
            seen.add(name)

    @property
    def arch_number(self) -> str:
        """The architecture as nvcc writes it: 120a."""
        return self.arch.replace(".", "")


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


def render(values: ScriptValues) -> str:
    """The text of the environment script."""
    return _render(values, HostFiles())


def fingerprint(values: ScriptValues) -> str:
    """Changes whenever the text of the script would, without the cost of rendering it."""
    template = (shipped("templates") / f"{SCRIPT}.j2").read_bytes()
    settings = msgspec.json.encode((_settings(values), values, HostFiles()))
    return hashlib.sha256(template + settings).hexdigest()


def environment(
    values: ScriptValues,
    generation_dir: Path,
    base_env: Mapping[str, str],
    *,
    host: HostFiles | None = None,
) -> dict[str, str]:
    """The environment of a child process: what the script would make of `base_env`."""
    settings = _settings(values)
    generation = generation_dir.resolve()
    places = {
        Base.NONE: "",
        Base.GENERATION: str(generation),
        Base.STATE: str(generation.parent.parent),
    }
    if not _listable(str(generation)):
        raise UsageError(
            "path-unusable",
            "the environment lies at a path that PATH cannot hold",
            where=str(generation),
            why="PATH is a list separated by ':', so a directory with ':' or a line break cannot be in it",
            fix="choose another --out directory",
        )

    env = {name: value for name, value in base_env.items() if name not in settings.cleared}
    for entry in settings.lists:
        front = [places[value.base] + value.text for value in entry.front]
        inherited = env.get(entry.name, "").split(":")
        kept = [element for element in inherited if element and element not in front]
        if entry.without_stubs:
            kept = [element for element in kept if not element.rstrip("/").endswith("/stubs")]
        env[entry.name] = ":".join([*front, *kept])
    if not env.get(settings.computed):
        env[settings.computed] = str(max_jobs(values.memory_per_job, host))
    for setting in settings.plain:
        env[setting.name] = places[setting.value.base] + setting.value.text
    return env


def quoted(text: str) -> str:
    """The text as one word of POSIX shell, whatever it holds. A shell word cannot hold NUL."""
    if "\0" in text:
        raise ValueError("a shell word cannot hold NUL")
    # Never two quotes side by side inside of quotes: zsh's RC_QUOTES would read them as one.
    return "'" + text.replace("'", "'\\''") + "'"


def _render(values: ScriptValues, host: HostFiles) -> str:
    import jinja2  # only a build that writes a script needs it

    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader(shipped("templates")),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    jinja.filters["sh"] = quoted
    jinja.filters["sh_value"] = _shell_value
    return jinja.get_template(f"{SCRIPT}.j2").render(
        script=SCRIPT,
        settings=_settings(values),
        values=values,
        host=host,
        toolchain=_TOOLCHAIN + values.toolchain,
    )


def _shell_value(value: Value) -> str:
    place = f'"$_envspec_{value.base.value}"' if value.base is not Base.NONE else ""
    return place + quoted(value.text)


_TOOLCHAIN = "/toolchains/"


def _settings(values: ScriptValues) -> _Settings:
    cuda = _TOOLCHAIN + values.toolchain
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


_JOBS = "MAX_JOBS"

_CLEARED = ("PYTHONHOME", "PYTHONPATH")
"""They would put other packages before the locked ones."""


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
    return Value(f"{_TOOLCHAIN}{values.toolchain}/{row.value}", Base.STATE)


# Names of the shells' own variables. To some of them a shell gives a meaning when they are assigned to; zsh
# evaluates what is assigned to its integer ones, which would run code out of a profile.
_SHELL_OWNED = re.compile(
    r"_|_ENVSPEC.*|BASH.*|ZSH.*|ZLS_.*|TRY_.*|COMP_.*|HIST.*|PROMPT.*|R?PS[1-4]|R?PROMPT[0-9]?|SPROMPT|R?PROMPT.*"
    r"|IFS|OPT(IND|ARG|ERR)|E?[UG]ID|PPID|USERNAME|SHELLOPTS|ENV|SHLVL|PWD|OLDPWD|RANDOM|SRANDOM|SECONDS|LINENO"
    r"|EPOCH.*|FUNCNAME|FUNCNEST|GROUPS|DIRSTACK(SIZE)?|ERRNO|COLUMNS|LINES|SAVEHIST|KEYTIMEOUT|LISTMAX"
    r"|LOGCHECK|MAIL.*|TTY(IDLE)?|CDPATH|FPATH|FIGNORE|MANPATH|MODULE_PATH|PSVAR|WATCH|NULLCMD|READNULLCMD"
    r"|KEYBOARD_HACK|WORDCHARS|TMPPREFIX|TMPSUFFIX|CPUTYPE|MACHTYPE|OSTYPE|HOSTTYPE|VENDOR|HOST|SIGNALS|STATUS"
    r"|PIPESTATUS|COPROC|MAPFILE|REPLY|READLINE_.*|POSIXLY_CORRECT|TIMEFMT|BAUD|REPORT.*|ARG(C|V0)|DEFAULT|FCEDIT|PERIOD"
)
_ENVSPEC_OWNED = frozenset(
    {"PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT"}
    | {*_CLEARED, _JOBS}
)


def settable(name: str) -> bool:
    # Lower case belongs to the shells (zsh: path, status, argv); the proxy variables are the known exception.
    if re.fullmatch(r"[A-Z_][A-Z0-9_]*|[a-z]+_proxy", name) is None:
        return False
    return name not in _ENVSPEC_OWNED and _SHELL_OWNED.fullmatch(name) is None


def _writable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _listable(path: str) -> bool:
    return ":" not in path and "\n" not in path


def _stays_below(path: str) -> bool:
    plain = PurePosixPath(path)
    return (
        path != ""
        and not plain.is_absolute()
        and ".." not in plain.parts
        and ":" not in path
        and path.isprintable()
        and str(plain) == path
    )


def _require(holds: object, key: str, found: str, wanted: str) -> None:
    if not holds:
        raise UsageError(
            "script-value",
            f"{key} cannot be {found!r} in an environment script",
            where=key,
            why=f"it has to be {wanted}",
            fix="change the profile's value",
        )
