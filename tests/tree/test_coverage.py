"""The coverage table: one row a cause family, in its order, and every name in it exists."""

from __future__ import annotations

from envspec.check.rules import RULES
from envspec.cli.codes import all_codes
from envspec.diagnose.knowledge import knowledge
from envspec.doctor.checks import CHECKS
from envspec.probe.rows import probe_rows
from scripts.coverage import coverage

KNOWN = {
    "check": {rule.code for rule in RULES.all()},
    "audit": {code.code for code in all_codes() if code.command in ("audit", "verify")},
    "doctor": {row.code for row in CHECKS.all()},
    "probe": {row.name for row in probe_rows()},
}


def test_every_family_has_one_row_in_the_order_of_the_tables() -> None:
    assert [row.family for row in coverage()] == [family.id for family in knowledge().families]


def test_what_rows_name_exists() -> None:
    for row in coverage():
        for column, known in KNOWN.items():
            named = getattr(row, column)
            assert set(named) <= known, (row.family, column)
            assert len(set(named)) == len(named), (row.family, column)
        assert not row.prevented or row.prevented.endswith((".", ").")), row.family


def test_every_check_of_doctor_and_every_probe_is_there_for_a_known_cause() -> None:
    for column in ("doctor", "probe"):
        used = {name for row in coverage() for name in getattr(row, column)}
        assert KNOWN[column] - used <= {"env-lists"}
