"""The keys of a profile as types, each with its documentation: the reference page and the JSON schema are made from them.

Reading a profile does not need this module; a test compares the keys with those that the reader asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType


def _key(
    means: str, example: object = None, *, default: str = "", required: bool = False, kind: str = ""
) -> Meta:
    """Return the documentation of a key.

    `default` says in words what holds without the key, where that is no value; `kind` names the type, where the type itself
    would mislead. What is `required` may come from the profile that this one extends, so that its type lets it be absent.
    """
    shown = example.isoformat() if isinstance(example, date) else example
    return Meta(
        description=means,
        examples=None if shown is None else [shown],
        extra={"example": example, "default": default, "required": required, "kind": kind},
    )


class _Keys(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, kw_only=True):
    """One table of a profile."""


class GpuKeys(_Keys):
    """Says which GPU the environment is for."""

    arch: Annotated[
        str | UnsetType,
        _key(
            "The GPU that kernels are compiled for: a compute capability, with the suffix `a` (this architecture alone) or "
            "`f` (its family) where it has one. `120a` and `sm_120a` are read, too.",
            "12.0a",
            required=True,
        ),
    ] = UNSET
    minimum_driver: Annotated[
        str | UnsetType,
        _key(
            "The oldest Linux driver that the environment has to run on.",
            "580.65.06",
            default="none; the check warns",
        ),
    ] = UNSET


class PythonKeys(_Keys):
    """Says which Pythons the lock serves."""

    versions: Annotated[
        str,
        _key("Range of Python versions (PEP 440). The lock serves every minor in it.", ">=3.10,<3.13"),
    ] = ">=3.10,<3.14"
    prefer: Annotated[
        str | UnsetType,
        _key(
            "The minor to take where several are installed.",
            "3.12",
            default='"3.12", or the newest in the range',
        ),
    ] = UNSET


class CudaKeys(_Keys):
    """Says which CUDA toolkit is used, where the profile and not the packages decide it."""

    toolkit: Annotated[
        str | UnsetType,
        _key(
            "A CUDA toolkit release from 13 on, as the metapackage `cuda-toolkit` numbers it. All parts come from it, also "
            "against other packages' pins. Required in a `[cuda]` section; without the section the packages decide.",
            "13.2.1",
            required=True,
        ),
    ] = UNSET
    components: Annotated[
        list[str],
        _key(
            "The parts of the toolkit that are wanted.",
            ["nvcc", "crt", "nvvm", "cudart", "nvrtc", "cccl", "cupti"],
        ),
    ] = msgspec.field(default_factory=lambda: ["nvcc", "crt", "nvvm", "cudart", "nvrtc", "cccl"])


class PackageKeys(_Keys):
    """Describes one package, where more than its version is asked for."""

    version: Annotated[str, _key("The version, where a table is used.", ">=1.2,<2")] = "*"
    extras: Annotated[list[str], _key("Extras of the package.", ["cu13"])] = []
    index: Annotated[
        str | UnsetType,
        _key(
            "The name of the index that the package has to come from.",
            "internal",
            default="all indexes that are not explicit",
        ),
    ] = UNSET


class OverrideKeys(_Keys):
    """Describes a version that wins over what other packages ask for."""

    name: Annotated[
        str, _key("A package whose version wins over what other packages ask for.", "numpy", required=True)
    ]
    version: Annotated[str, _key("The version or range that wins, without a label.", "2.3.5", required=True)]
    reason: Annotated[str, _key("Why. It is written into the lock.", "2.4 breaks X", required=True)]


class IndexKeys(_Keys):
    """Describes a package index, or a directory of wheels."""

    name: Annotated[
        str,
        _key(
            "A name for the index. Credentials are looked up by it: `UV_INDEX_INTERNAL_USERNAME`, "
            "`UV_INDEX_INTERNAL_PASSWORD`.",
            "internal",
            required=True,
        ),
    ]
    url: Annotated[
        str,
        _key(
            "An http(s) or file URL, or a directory relative to the profile. It does not go into the lock.",
            "https://wheels.example/simple",
            required=True,
        ),
    ]
    format: Annotated[
        Literal["simple", "flat"], _key("`flat` for a directory, or a page, of wheels.", "flat")
    ] = "simple"
    default: Annotated[bool, _key("Use it instead of uv's default index.", False)] = False
    explicit: Annotated[bool, _key("Use it only for packages that name it.", True)] = False


class ResolveKeys(_Keys):
    """Says what the resolver may choose from."""

    exclude_newer: Annotated[
        str | UnsetType,
        _key(
            "Files that were uploaded at or after this moment do not exist for the resolver. A bare date means its first "
            "moment in UTC.",
            date(2026, 5, 25),
            default="none; the check warns",
            kind="date, or date and time with zone",
        ),
    ] = UNSET
    machines: Annotated[list[str], _key("The machines that the lock serves.", ["x86_64", "aarch64"])] = (
        msgspec.field(default_factory=lambda: ["x86_64", "aarch64"])
    )
    allow_sdists: Annotated[
        list[str],
        _key(
            "Packages that may be built from source. The environment is then no longer the same everywhere.",
            ["some-package"],
        ),
    ] = []


class InstallKeys(_Keys):
    """Says how packages are installed."""

    precedence: Annotated[
        list[str],
        _key(
            "Packages whose files take precedence where several packages hold one path; later ones over earlier ones. The "
            "name of this key in older releases, `winners`, is still read.",
            ["nvidia-cutlass-dsl-libs-cu13"],
        ),
    ] = []


class JobsKeys(_Keys):
    """Says how many compilers may run at once."""

    memory_per_job: Annotated[
        str,
        _key(
            "Memory that one compiler process is given when MAX_JOBS is computed: a number and MiB, GiB, MB or GB; at least "
            "64 MiB.",
            "4 GiB",
        ),
    ] = "4 GiB"
    memory_headroom: Annotated[
        str,
        _key(
            "Memory that compile jobs leave free: for machines whose GPU shares the memory (GB10, Thor). 0, or a number and "
            "MiB, GiB, MB or GB.",
            "16 GiB",
        ),
    ] = "0"


class ProfileKeys(_Keys):
    """Describes a profile of envspec."""

    extends: Annotated[
        str | UnsetType,
        _key(
            "Another profile that this one is based on; relative to this file. Tables merge key by key, everything else "
            "replaces. Up to eight files in a row."
        ),
    ] = UNSET
    gpu: GpuKeys | UnsetType = UNSET
    python: PythonKeys | UnsetType = UNSET
    cuda: CudaKeys | UnsetType = UNSET
    packages: Annotated[
        dict[str, str | PackageKeys] | UnsetType,
        _key(
            'A package that is asked for: a version, a range or `"*"`. A label such as `+cu130` is a claim about the CUDA '
            "build, which is verified. At least one package is needed for a useful profile.",
            {"torch": "2.11.0+cu130"},
            required=True,
        ),
    ] = UNSET
    override: list[OverrideKeys] | UnsetType = UNSET
    index: list[IndexKeys] | UnsetType = UNSET
    resolve: ResolveKeys | UnsetType = UNSET
    install: InstallKeys | UnsetType = UNSET
    jobs: JobsKeys | UnsetType = UNSET
    environment: Annotated[
        dict[str, str] | UnsetType,
        _key(
            "A variable that the environment script sets, literally. Not the ones that envspec or a shell owns.",
            {"NCCL_DEBUG": "1"},
        ),
    ] = UNSET


class ProfileKey(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one key as the reference page shows it.

    `NAME` in `key` stands for a name of the user's, `[]` for one table of several. `default` and `example` are TOML as it
    stands behind the equals sign, `default` also words.
    """

    key: str
    type: str
    means: str
    required: bool = False
    default: str = ""
    example: str = ""


def profile_keys() -> tuple[ProfileKey, ...]:
    """Return every key, in the order of the page."""
    return tuple(_rows(ProfileKeys, ""))


def example_profile() -> str:
    """Return a profile in which every key has the value of its example. It is there to show the syntax, not to be built."""
    lines: list[str] = []
    heading = ""
    for row in profile_keys():
        table, _, name = row.key.rpartition(".")
        if not row.example:
            continue
        if table == "packages":
            name = "torch"
        table = table.replace("NAME", "some-package")
        name = name.replace("NAME", "NCCL_DEBUG")
        if table != heading:
            lines += ["", f"[[{table.removesuffix('[]')}]]" if table.endswith("[]") else f"[{table}]"]
            heading = table
        lines.append(f"{name} = {row.example}")
    return "\n".join(lines).strip() + "\n"


def _rows(table: type[_Keys], prefix: str) -> Iterator[ProfileKey]:
    hints = get_type_hints(table, include_extras=True)
    for field in msgspec.structs.fields(table):
        key = f"{prefix}{field.encode_name}"
        plain, meta = _without_meta(hints[field.name])
        inner = _inner(plain)
        if meta is not None and get_origin(plain) is dict:
            yield _row(f"{key}.NAME", get_args(plain)[1], meta, field)
            key = f"{key}.NAME"
        elif meta is not None:
            yield _row(key, plain, meta, field)
        if inner is not None:
            yield from _rows(inner, f"{key}[]." if get_origin(plain) is list else f"{key}.")


def _row(key: str, plain: Any, meta: Meta, field: msgspec.structs.FieldInfo) -> ProfileKey:
    extra = meta.extra or {}
    example = extra["example"]
    if isinstance(example, dict):
        (example,) = example.values()
    return ProfileKey(
        key=key,
        type=extra["kind"] or _words(plain),
        means=meta.description or "",
        required=extra["required"],
        default=extra["default"] or _toml(_default(field)),
        example=_toml(example),
    )


def _default(field: msgspec.structs.FieldInfo) -> object:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default in (msgspec.NODEFAULT, UNSET) else field.default


def _without_meta(hint: Any) -> tuple[Any, Meta | None]:
    """Return a type without its documentation and without the way in which it may be absent."""
    meta = None
    if get_origin(hint) is Annotated:
        hint, meta = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        left = tuple(one for one in get_args(hint) if one is not UnsetType)
        hint = left[0] if len(left) == 1 else Union[left]  # noqa: UP007 - made at run time
    return hint, meta


def _inner(plain: Any) -> type[_Keys] | None:
    """Return the type of the tables in a value, if it holds any."""
    for one in (plain, *get_args(plain), *(two for part in get_args(plain) for two in get_args(part))):
        if isinstance(one, type) and issubclass(one, _Keys):
            return one
    return None


def _words(plain: Any) -> str:
    """Return a type in words."""
    if get_origin(plain) in (Union, UnionType):
        return " or ".join(_words(one) for one in get_args(plain))
    if get_origin(plain) is list:
        return "list of strings"
    if isinstance(plain, type) and issubclass(plain, _Keys):
        return "table"
    return "true or false" if plain is bool else "string"


def _toml(value: object) -> str:
    """Return a value as TOML writes it; nothing for None. For strings and lists of them that is what JSON writes, too."""
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, date) else json.dumps(value)
