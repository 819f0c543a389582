"""The table of a profile's keys, for its reference page: `data/profile_keys.toml`. Reading profiles does not need it."""

from __future__ import annotations

import msgspec

from envspec.data import load_table


class ProfileKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One key. `NAME` in it stands for a name of the user's, `[]` for one table of several."""

    key: str
    type: str
    means: str
    required: bool = False
    default: str = ""
    example: str = ""


def profile_keys() -> tuple[ProfileKey, ...]:
    """Every key, in the order of the page."""
    return load_table("profile_keys", ProfileKey)


def example_profile() -> str:
    """A profile in which every key has the value of its example. It is there to show the syntax, not to be built."""
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
