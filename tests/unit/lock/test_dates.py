"""A release that does not exist yet on the profile's date is answered with both dates, whatever else contradicts it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envspec.check.fix import fix_profile
from envspec.check.input import target_of
from envspec.check.run import check_profile
from envspec.cli.progress import make_progress
from envspec.lock.dates import named_in
from envspec.lock.resolve import resolve
from envspec.profile import Profile, read_profile
from envspec.report.errors import UsageError
from envspec.report.findings import Report
from envspec.report.text import render_error
from envspec.uv.run import Uv
from tests.support.index import LoopbackIndex, serve_index
from tests.support.texts import without_more
from tests.support.wheels import make_wheel

Write = Callable[[str], Profile]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LoopbackIndex]:
    wheels = tmp_path / "wheels"
    make_wheel(wheels, "app", "1", requires=["torch==2.11.0"])
    make_wheel(wheels, "free", "1", requires=["torch"])
    make_wheel(wheels, "needs-late", "1", requires=["late>=3"])
    make_wheel(wheels, "torch", "2.11.0")
    make_wheel(wheels, "torch", "2.13.0")
    make_wheel(wheels, "torch-extra", "1")
    make_wheel(wheels, "late", "3")
    make_wheel(wheels, "cuda-toolkit", "13.9.1", extras=["nvcc"])
    with serve_index(wheels) as running:
        for name in ("torch-2.13.0", "late-3", "cuda_toolkit-13.9.1"):
            running.uploaded[f"{name}-py3-none-any.whl"] = "2026-09-01T12:30:00Z"
        yield running


@pytest.fixture
def write(tmp_path: Path, index: LoopbackIndex) -> Write:
    """Writes a profile of the date 2026-05-25 over that index."""

    def made(body: str) -> Profile:
        path = tmp_path / "p.toml"
        path.write_text(
            f'[gpu]\narch = "12.0a"\n{body}[resolve]\nmachines = ["x86_64"]\nexclude-newer = 2026-05-25\n'
            f'[[index]]\nname = "loop"\nurl = "{index.url}"\ndefault = true\n',
            encoding="utf-8",
        )
        return read_profile(path)

    return made


def refusal(profile: Profile) -> UsageError:
    with pytest.raises(UsageError) as caught:
        resolve(profile, Uv(), Path(sys.executable))
    return caught.value


def test_the_whole_text_where_another_package_contradicts_too(write: Write, tmp_path: Path) -> None:
    profile = write('[packages]\napp = "1"\ntorch = "2.13.0"\n')
    assert without_more(render_error(refusal(profile))).replace(f"{tmp_path}/", "") == (
        "error[newer-than-date]: torch 2.13.0 was published on 2026-09-01, after the date of the profile (2026-05-25)\n"
        "  p.toml: resolve.exclude-newer\n"
        "  | No solution found when resolving dependencies for split "
        "(markers: platform_machine == 'x86_64' and sys_platform == 'linux')\n"
        "  |   cause: Because all versions of app depend on torch==2.11.0 and your profile depends on app==1, "
        "we can conclude that your profile depends on torch==2.11.0.\n"
        "  |          And because your profile depends on torch==2.13.0, "
        "we can conclude that your profile's requirements are unsatisfiable.\n"
        "  fix: move resolve.exclude-newer to 2026-09-02 or later, or pin a release that is older than it\n"
    )


@pytest.mark.parametrize(
    ("packages", "what"),
    [
        ('torch = "2.13.0"\n', "torch 2.13.0 was published on 2026-09-01"),
        ('free = "1"\ntorch = "2.13.0"\n', "torch 2.13.0 was published on 2026-09-01"),
        ('torch = ">=2.12"\n', "torch 2.13.0 was published on 2026-09-01"),
        ('late = "*"\n', "late 3 was published on 2026-09-01"),
        ('needs-late = "1"\n', "late 3 was published on 2026-09-01"),
    ],
)
def test_what_is_newer_is_named_with_its_date(write: Write, packages: str, what: str) -> None:
    found = refusal(write(f"[packages]\n{packages}"))
    assert (found.code, found.what) == (
        "newer-than-date",
        f"{what}, after the date of the profile (2026-05-25)",
    )
    assert "exclude-newer-package" not in found.why


def test_a_toolkit_release_that_is_newer(write: Write) -> None:
    found = refusal(
        write('[packages]\ntorch = "2.11.0"\n[cuda]\ntoolkit = "13.9.1"\ncomponents = ["nvcc"]\n')
    )
    assert (found.code, found.what.partition(",")[0]) == (
        "newer-than-date",
        "cuda-toolkit 13.9.1 was published on 2026-09-01",
    )


def test_what_never_existed_has_no_date(write: Write) -> None:
    assert refusal(write('[packages]\ntorch = "2.99.0"\n')).code == "no-such-version"


def test_what_only_contradicts_has_no_date(write: Write) -> None:
    write('[packages]\ntorch = "2.11.0"\n')
    profile = write('[packages]\napp = "1"\ntorch = "2.13.0"\n')
    without_date = profile.path.read_text().replace("2026-05-25", "2026-12-01")
    profile.path.write_text(without_date)
    assert refusal(read_profile(profile.path)).code == "unsatisfiable"


def test_the_check_says_so_too_and_fixes_the_pin_where_another_package_asks(write: Write) -> None:
    profile = write('[packages]\napp = "1"\ntorch = "2.13.0"\n')

    def check(asked: Profile) -> Report:
        return check_profile(
            asked,
            Uv(),
            {"PATH": "/usr/bin:/bin"},
            make_progress(),
            allowed=frozenset({"toolkit-incomplete"}),
        )

    found = check(profile)
    assert {one.code for one in found.errors} == {"newer-than-date", "requirement-broken"}
    fixed = fix_profile(profile.path, target_of(profile, None), Uv(), Path(sys.executable), check)
    assert fixed.report.errors == ()
    assert '+torch = "2.11.0"' in fixed.difference


def test_a_name_inside_of_another_name_is_not_named() -> None:
    assert named_in("torch==2.13.0 and", "torch")
    assert not named_in("depends on torch-extra==1", "torch")
    assert not named_in("depends on my-torch==1", "torch")
