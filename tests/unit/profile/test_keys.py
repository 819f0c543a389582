"""The types of a profile's keys: their JSON schema accepts what the reader accepts, as far as keys and types go."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from envspec.data import load_toml
from envspec.data.shipped import PROFILE_SCHEMA, shipped_profiles
from envspec.profile import read_profile
from envspec.profile.keys import example_profile
from envspec.profile.load import OLD_KEYS
from envspec.report.errors import UsageError
from scripts.make_schema import schemas

SCHEMA = json.loads(PROFILE_SCHEMA.read_text(encoding="utf-8"))


def as_json(value: Any) -> Any:
    """A TOML value as an editor sees it: a date is text."""
    if isinstance(value, dict):
        return {key: as_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    return value.isoformat() if isinstance(value, date | datetime) else value


def validate(text: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(as_json(load_toml(text)), SCHEMA)


@pytest.mark.parametrize("name", ["report.schema.json", "profile.schema.json"])
def test_the_schemas_are_current(name: str) -> None:
    made = schemas()[name]
    assert (PROFILE_SCHEMA.parent / name).read_text(encoding="utf-8") == made, "run scripts/make_schema.py"


@pytest.mark.parametrize("path", shipped_profiles(), ids=lambda path: path.stem)
def test_shipped_profiles_are_valid(path: Path) -> None:
    validate(path.read_text(encoding="utf-8"))


def test_the_example_of_every_key_is_valid() -> None:
    validate(example_profile())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('[gpu]\narchh = "12.0a"\n[packages]\n', "archh"),
        ('[gpu]\narch = "12.0a"\n[packages]\n[gpus]\n', "gpus"),
        ('[gpu]\narch = 12\n[packages]\n', "12 is not of type 'string'"),
        ('[gpu]\narch = "12.0a"\n[packages]\na = { vresion = "1" }\n', "vresion"),
        ('[gpu]\narch = "12.0a"\n[packages]\n[[override]]\nname = "a"\nversion = "1"\n', "'reason' is a required"),
        ('[gpu]\narch = "12.0a"\n[packages]\n[resolve]\nmachines = ["riscv64"]\n', "'riscv64' is not one of"),
        ('[gpu]\nminimum-driver = "580"\n[packages]\n', "'arch' is a required"),
        ('[packages]\na = "1"\n', "'gpu' is a required"),
        ('[gpu]\narch = "12.0a"\n[cuda]\ncomponents = ["nvcc"]\n[packages]\n', "'toolkit' is a required"),
    ],
)  # fmt: skip
def test_what_the_reader_refuses_is_not_valid(tmp_path: Path, text: str, word: str) -> None:
    errors = list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(as_json(load_toml(text))))
    messages = [each.message for error in errors for each in (error, *(error.context or ()))]
    assert any(word in message for message in messages), messages
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError):
        read_profile(path)


def test_an_old_name_of_a_key_is_valid_and_deprecated() -> None:
    validate('[gpu]\narch = "12.0a"\n[packages]\n[install]\nwinners = ["a"]\n')
    for old in OLD_KEYS:
        assert SCHEMA["$defs"]["InstallKeys"]["properties"][old.partition(".")[2]]["deprecated"]


@pytest.mark.parametrize(
    "text", ['extends = "h200"\n', 'extends = "h200"\n[gpu]\nminimum-driver = "590.1"\n']
)
def test_a_profile_that_extends_another_need_not_be_complete(text: str) -> None:
    validate(text)
