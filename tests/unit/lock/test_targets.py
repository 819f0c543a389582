"""Which wheels serve a target, and the one way to write a marker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker
from packaging.tags import compatible_tags, cpython_tags

from envspec.lock.targets import canonical_marker, holds_somewhere, serves, target_environment

MINORS = ("3.10", "3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")


@pytest.mark.parametrize(
    ("wheel", "answer"),
    [
        ("a-1-py3-none-any.whl", True),
        ("a-1-py2.py3-none-any.whl", True),
        ("a-1-py37-none-any.whl", True),
        ("a-1-py2-none-any.whl", False),
        ("a-1-cp310-cp310-manylinux_2_28_x86_64.whl", True),
        ("a-1-cp39-cp39-manylinux_2_28_x86_64.whl", False),
        ("a-1-cp39-abi3-manylinux_2_28_aarch64.whl", True),
        ("a-1-cp314-abi3-manylinux_2_28_x86_64.whl", False),
        ("a-1-cp313-cp313t-manylinux_2_28_x86_64.whl", False),
        ("a-1-cp310-cp310-musllinux_1_2_x86_64.whl", False),
        ("a-1-cp310-cp310-win_amd64.whl", False),
        ("a-1-cp310-cp310-macosx_11_0_arm64.whl", False),
        ("a-1-pp310-pypy310_pp73-manylinux_2_28_x86_64.whl", False),
        ("a-1-cp312-cp312-manylinux_2_28_ppc64le.whl", False),
        ("not a wheel", False),
    ],
)
def test_serves(wheel: str, answer: bool) -> None:
    assert serves(wheel, MINORS, MACHINES) is answer


@given(
    st.sampled_from(["py2", "py3", "py2.py3", "py39", "py313", "cp38", "cp310", "cp312", "cp315"]),
    st.sampled_from(["none", "abi3", "cp310", "cp312", "cp312t"]),
    st.sampled_from(["any", "manylinux_2_17_x86_64", "manylinux2014_aarch64", "linux_x86_64", "win_amd64"]),
)
def test_serves_what_an_installer_would_take(python: str, abi: str, platform: str) -> None:
    """packaging's own tag lists are the oracle."""
    tags = set()
    for minor in MINORS:
        version = tuple(int(n) for n in minor.split("."))
        for machine in MACHINES:
            platforms = [f"manylinux_2_17_{machine}", f"manylinux2014_{machine}", f"linux_{machine}"]
            tags |= set(cpython_tags(version, platforms=platforms))
            tags |= set(compatible_tags(version, platforms=platforms))
    wheel = f"a-1-{python}-{abi}-{platform}.whl"
    # An installer also takes interpreter-specific pure wheels of the exact minor (cp312-none-any); so do we.
    expected = any(str(t) == f"{p}-{abi}-{platform}" for t in tags for p in python.split("."))
    expected = expected or (
        abi == "none"
        and python in ("cp310", "cp312")
        and serves("a-1-py3-none-" + platform + ".whl", MINORS, MACHINES)
    )
    assert serves(wheel, MINORS, MACHINES) is expected


@pytest.mark.parametrize(
    ("marker", "canonical"),
    [
        ("", ""),
        ("sys_platform == 'linux'", ""),
        ("(platform_machine == 'aarch64' or platform_machine == 'x86_64') and sys_platform == 'linux'", ""),
        ("implementation_name != 'PyPy'", ""),
        ("python_version < '3.11' and sys_platform == 'linux'", "python_full_version < '3.11'"),
        ("python_full_version < '3.10.2'", "python_full_version < '3.10.2'"),
        ("python_full_version == '3.12.*'", "python_full_version >= '3.12' and python_full_version < '3.13'"),
        ("platform_machine == 'x86_64'", "platform_machine == 'x86_64'"),
        (
            "platform_machine == 'x86_64' and python_version >= '3.12' or platform_machine == 'aarch64'",
            "(platform_machine == 'x86_64' and python_full_version >= '3.12') or platform_machine == 'aarch64'",
        ),
    ],
)
def test_canonical_marker(marker: str, canonical: str) -> None:
    found = canonical_marker(marker, MINORS, MACHINES)
    assert sorted(found.split(" or ")) == sorted(canonical.split(" or "))


ATOMS = st.sampled_from(
    [f"python_version {op} '{v}'" for op in ("<", ">=", "==", "!=") for v in ("3.10", "3.11", "3.13")]
    + [
        f"python_full_version {op} '{v}'"
        for op in ("<", "<=", ">", "==")
        for v in ("3.10.2", "3.12.4", "3.12")
    ]
    + [f"platform_machine {op} '{m}'" for op in ("==", "!=") for m in ("x86_64", "aarch64", "arm64")]
    + ["sys_platform == 'linux'", "sys_platform == 'win32'", "implementation_name == 'cpython'"]
)
MARKERS = st.recursive(
    ATOMS,
    lambda m: st.tuples(m, st.sampled_from(["and", "or"]), m).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
)


@given(MARKERS)
def test_canonical_marker_means_the_same_on_every_target(marker: str) -> None:
    if not holds_somewhere(marker, MINORS, MACHINES):
        return
    canonical = canonical_marker(marker, MINORS, MACHINES)
    for machine in MACHINES:
        for minor in MINORS:
            for patch in range(8):
                environment = target_environment(f"{minor}.{patch}", machine)
                assert (not canonical or Marker(canonical).evaluate(environment)) == Marker(marker).evaluate(
                    environment
                )


@given(MARKERS)
def test_canonical_form_is_canonical(marker: str) -> None:
    if holds_somewhere(marker, MINORS, MACHINES):
        once = canonical_marker(marker, MINORS, MACHINES)
        assert canonical_marker(once, MINORS, MACHINES) == once
