"""Whose file is this: packages on disk, several owners of one path, and what came after publishing."""

from __future__ import annotations

from pathlib import Path

import pytest

from envspec.report.errors import EnvspecError
from envspec.venv import record
from envspec.venv.owners import (
    Conflict,
    Owners,
    added_package,
    conflicts,
    dist_infos,
    distributions,
    installed_packages,
    is_installer_file,
    owned_files,
    preferred,
)
from envspec.venv.record import read_record

SITE = "lib/python3.12/site-packages"
ONE = "sha256=AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"
TWO = "sha256=AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI"


def dist_info(site: Path, directory: str, *rows: str, installer: str = "") -> Path:
    """A dist-info with a RECORD of these rows."""
    info = site / directory
    info.mkdir(parents=True)
    (info / "RECORD").write_text("".join(f"{row}\n" for row in rows))
    if installer:
        (info / "INSTALLER").write_text(installer)
    return info


def test_dist_infos_are_told_by_their_names(tmp_path: Path) -> None:
    for name in ("Zope.Interface-6.0", "torch-2.11.0+cu130", "~orch-2.10.0", "nameless"):
        (tmp_path / f"{name}.dist-info").mkdir()
    (tmp_path / "file-1.0.dist-info").write_text("")
    (tmp_path / "link-1.0.dist-info").symlink_to(tmp_path / "torch-2.11.0+cu130.dist-info")
    found = [(d.name, d.version, d.dist_info) for d in distributions(tmp_path)]
    assert found == [
        ("torch", "2.11.0+cu130", "torch-2.11.0+cu130.dist-info"),
        ("zope-interface", "6.0", "Zope.Interface-6.0.dist-info"),
    ]
    assert distributions(tmp_path / "nowhere") == ()


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"a.py,sha256=x,1\n" + b"0" * 100], ids=repr)
def test_a_record_that_cannot_be_read_is_an_error_where_it_was_installed_and_names_nothing_where_it_was_added(
    tmp_path: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "MAX_RECORD", 100)
    site = tmp_path / SITE
    info = dist_info(site, "a-1.dist-info")
    (info / "METADATA").write_text("")
    (info / "RECORD").unlink()
    if content is not None:
        (info / "RECORD").write_bytes(content)
    with pytest.raises(EnvspecError) as caught:
        installed_packages(site)
    assert caught.value.code == "record-damaged"
    (found,) = distributions(site)
    own = {path.rpartition("/")[2] for path in added_package(site, SITE, found).paths}
    assert own == {"METADATA", *(["RECORD"] if content is not None else [])}


def test_a_record_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("a.py,,\n")
    (tmp_path / "RECORD").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvspecError, match="no readable RECORD"):
        read_record(tmp_path / "RECORD")


def test_a_number_that_nobody_can_count_to_is_no_size(tmp_path: Path) -> None:
    (tmp_path / "RECORD").write_text(f"a.py,{ONE},{'9' * 5000}\n")
    assert [row.size for row in read_record(tmp_path / "RECORD")] == [-1]


def test_of_several_owners_the_declared_one_has_the_file(tmp_path: Path) -> None:
    dist_info(tmp_path, "a-1.dist-info", f"x.py,{ONE},1", f"same.py,{ONE},1")
    dist_info(tmp_path, "b-1.dist-info", f"x.py,{TWO},2", f"same.py,{ONE},1")
    packages = installed_packages(tmp_path)
    assert conflicts(packages) == (Conflict("x.py", (("a", "01" * 32), ("b", "02" * 32))),)
    (conflict,) = conflicts(packages)
    assert preferred(conflict, {}) is None
    assert preferred(conflict, {"b": 0, "a": 1}) == ("a", "01" * 32)
    for winner in "ab":
        assert owned_files(packages, SITE, {"x.py": winner})[f"{SITE}/x.py"].package == winner


def test_what_an_added_package_says_of_other_places_is_left_out(tmp_path: Path) -> None:
    site = tmp_path / SITE
    rows = [
        "g.py,,",
        "../../../bin/g,,",
        "../../../../x,,",
        "/etc/passwd,,",
        "a\0b,,",
        "../../../a/../../x,,",
    ]
    dist_info(site, "guest-3.dist-info", *rows, installer="uv\n")
    guest = added_package(site, SITE, distributions(site)[0])
    assert guest.paths == {
        f"{SITE}/g.py",
        "bin/g",
        f"{SITE}/guest-3.dist-info/RECORD",
        f"{SITE}/guest-3.dist-info/INSTALLER",
    }
    assert (str(guest), guest.installer) == ("guest 3", "uv")


def test_an_installer_is_a_word_or_unknown(tmp_path: Path) -> None:
    dist_info(tmp_path, "a-1.dist-info", installer="\x1b[31mred\n")
    dist_info(tmp_path, "b-1.dist-info")
    found = [added_package(tmp_path, SITE, d).installer for d in distributions(tmp_path)]
    assert found == ["an unknown installer"] * 2


def test_a_dist_info_inside_a_package_is_none_of_the_venvs() -> None:
    files = [(f"{SITE}/setuptools/_vendor/wheel-1.dist-info/RECORD", "setuptools")]
    files += [(f"{SITE}/setuptools-80.dist-info/{name}", "setuptools") for name in ("RECORD", "METADATA")]
    assert dist_infos(files, SITE) == {"setuptools-80.dist-info": "setuptools"}
    assert is_installer_file("a-1.dist-info/RECORD") and not is_installer_file("a/RECORD")


def test_a_file_that_drifted_belongs_to_what_was_added(tmp_path: Path) -> None:
    site = tmp_path / SITE
    dist_info(site, "torch-2.12.dist-info", "torch/a.so,,", "torch/new.so,,", "torch/b.so,,")
    files = [(f"{SITE}/torch/{name}.so", "torch") for name in "abc"] + [("bin/python", "uv")]
    before = Owners(SITE, files, [("torch", "2.11"), ("gone", "1")])
    assert before.of(f"{SITE}/torch/a.so") == "torch 2.11" and before.of("bin/python") == ""
    assert before.of_directory(f"{SITE}/torch") == "torch 2.11" and before.of_directory("bin") == ""
    assert before.owns("torch", f"{SITE}/torch/a.so") and not before.owns("torch", "bin/python")
    assert before.lost("b.so", ()) == ("torch 2.11",) and before.lost("new.so", ()) == ()

    added = [added_package(site, SITE, d) for d in distributions(site)]
    drifted = {f"{SITE}/torch/{name}.so" for name in ("a", "c", "new", "else")}
    after = Owners(SITE, files, [("torch", "2.11")], added, drifted)
    assert after.version("torch") == "2.12" and after.version("nothing") == ""
    assert after.lost("new.so", ()) == ("torch 2.12",)
    assert after.of(f"{SITE}/torch/else.so") == ""
