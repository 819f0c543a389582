"""Makes envspec/data/report.schema.json, the schema of every `--json` report, from the types themselves."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from envspec.report.findings import Report

TARGET = Path(__file__).parent.parent / "envspec" / "data" / "report.schema.json"


def schema_text() -> str:
    """The schema as it is committed."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "envspec report, version 1"}
    return json.dumps(schema | msgspec.json.schema(Report), indent=2) + "\n"


if __name__ == "__main__":
    TARGET.write_text(schema_text(), encoding="utf-8")
