"""Writes the JSON schemas in envspec/data from the types. With --check it writes nothing and fails if one is not current.

python scripts/make_schema.py [--check]

report.schema.json: whatever a command prints on standard output with `--json`.
profile.schema.json: a profile, for editors that complete and check TOML.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from envspec.check.match import MatchTable
from envspec.cli.built import Built
from envspec.cli.check_names import CheckNames
from envspec.cli.explain import Explained
from envspec.cli.generations import CurrentGeneration
from envspec.cli.init import Started
from envspec.cli.lock import Locked
from envspec.cli.profiles import NamedProfiles
from envspec.cli.why import Requirers
from envspec.data.profile_values import values_by_key
from envspec.diagnose import Diagnosis
from envspec.output.difference import Difference
from envspec.output.history import GcResult, GenerationList
from envspec.probe.reporting import ProbeReport
from envspec.profile.keys import ProfileKeys, profile_keys
from envspec.profile.load import OLD_KEYS
from envspec.report.error_report import ErrorReport
from envspec.report.findings import Report

DATA = Path(__file__).resolve().parent.parent / "envspec" / "data"

RESULTS: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "audit": (Report,),
    "build": (Built,),
    "check": (Report,),
    "diagnose": (Diagnosis,),
    "diff": (Difference,),
    "digest": (CurrentGeneration,),
    "doctor": (Report, CheckNames),
    "explain": (Explained,),
    "gc": (GcResult,),
    "generations": (GenerationList,),
    "init": (Started,),
    "lock": (Locked,),
    "match": (MatchTable,),
    "probe": (ProbeReport, CheckNames),
    "profiles": (NamedProfiles,),
    "repair": (Report,),
    "rollback": (CurrentGeneration,),
    "upgrade": (Built,),
    "verify": (Report,),
    "why": (Requirers,),
}
"""What each command prints with `--json` if it comes to a result. What prints none of it ends in an ErrorReport."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, str]:
    """Return the text of each schema by its file name."""
    return {"report.schema.json": _text(_report_schema()), "profile.schema.json": _text(_profile_schema())}


def _report_schema() -> dict[str, Any]:
    commands: dict[type[msgspec.Struct], list[str]] = {}
    for command, types in RESULTS.items():
        for kind in types:
            commands.setdefault(kind, []).append(command)
    commands[ErrorReport] = ["every command that has no result"]
    kinds = tuple(commands)
    references, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    return {
        "$schema": _DRAFT,
        "title": "What envspec prints on standard output with --json, version 1",
        "anyOf": [
            reference | {"description": ", ".join(commands[kind])}
            for kind, reference in zip(kinds, references, strict=True)
        ],
        "$defs": definitions,
    }


def _profile_schema() -> dict[str, Any]:
    (_, definitions) = msgspec.json.schema_components((ProfileKeys,), ref_template="#/$defs/{name}")
    top = definitions.pop("ProfileKeys")
    tables = {
        name: definitions[of["$ref"].rpartition("/")[2]]
        for name, of in top["properties"].items()
        if "$ref" in of
    }
    for key, values in values_by_key().items():
        table, name = key.split(".")
        known = tables[table]["properties"][name]
        if known["type"] == "array":
            known["items"]["enum"] = list(values)
    for old, new in OLD_KEYS.items():
        table, name = old.split(".")
        current = tables[table]["properties"][new.partition(".")[2]]
        tables[table]["properties"][name] = {
            "type": current["type"],
            "items": current["items"],
            "deprecated": True,
            "description": f"The name of {new} in older releases.",
        }
    required: dict[str, list[str]] = {}
    for row in profile_keys():
        table, _, name = row.key.rpartition(".")
        if row.required and not table.endswith("[]"):
            required.setdefault(table, []).append(name)
    (_,) = required.pop("packages")
    return {
        "$schema": _DRAFT,
        "title": "A profile of envspec",
        **{key: value for key, value in top.items() if key not in ("title", "required")},
        # What is missing here may stand in the profile that this one extends.
        "anyOf": [
            {"required": ["extends"]},
            {
                "required": ["gpu", "packages"],
                "properties": {table: {"required": names} for table, names in required.items()},
            },
        ],
        "$defs": definitions,
    }


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(_the_same_everywhere(schema), indent=2) + "\n"


def _the_same_everywhere(value: Any) -> Any:
    """Return a schema without what differs between releases of msgspec and Python.

    Descriptions keep or lose the indentation of their docstrings, and null is the first or the last choice.
    """
    if isinstance(value, list):
        return [_the_same_everywhere(of) for of in sorted(value, key=lambda of: of == {"type": "null"})]
    if isinstance(value, dict):
        return {key: _the_same_everywhere(of) for key, of in value.items()}
    return inspect.cleandoc(value) if isinstance(value, str) else value


def main() -> int:
    """Write what is outdated, or with --check only name it."""
    check = "--check" in sys.argv[1:]
    outdated = []
    for name, text in schemas().items():
        path = DATA / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        outdated.append(name)
        if not check:
            path.write_text(text, encoding="utf-8")
    print(f"{'outdated' if check else 'written'}: {', '.join(outdated) or 'none'}")
    return 1 if outdated and check else 0


if __name__ == "__main__":
    sys.exit(main())
