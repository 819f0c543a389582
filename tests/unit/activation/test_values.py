"""What may stand in an environment script, and the table of variables that JIT compilers read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from envspec.activation.process import process_environment
from envspec.activation.script import fingerprint, render_script
from envspec.activation.settings import settings_of
from envspec.activation.values import ScriptValues
from envspec.data.jit_variables import Kind, consumers
from envspec.data.reserved_variables import reserved_rows, settable
from envspec.report.errors import UsageError
from tests.support.shells import VALUES

BAD = [
    ({"toolchain": "../x"}, "toolchain cannot be '../x' in an environment script"),
    (
        {"toolchain": "0123456789abcdef\n"},
        "toolchain cannot be '0123456789abcdef\\n' in an environment script",
    ),
    ({"arch": "sm_120"}, "arch cannot be 'sm_120' in an environment script"),
    ({"memory_per_job": 0}, "memory_per_job cannot be '0' in an environment script"),
    ({"site_packages": "/usr/lib"}, "site_packages cannot be '/usr/lib' in an environment script"),
    ({"site_packages": ""}, "site_packages cannot be '' in an environment script"),
    ({"site_packages": "a/../b"}, "site_packages cannot be 'a/../b' in an environment script"),
    ({"site_packages": "a:b"}, "site_packages cannot be 'a:b' in an environment script"),
    ({"prompt": "a\0b"}, "prompt cannot be 'a\\x00b' in an environment script"),
    ({"variables": (("A", "\ud800"),)}, "environment.A cannot be '\\ud800' in an environment script"),
    ({"variables": (("A", "1"), ("A", "2"))}, "environment.A cannot be 'A' in an environment script"),
    ({"variables": (("A;B", ""),)}, "environment.A;B cannot be 'A;B' in an environment script"),
    ({"variables": (("PATH", ""),)}, "environment.PATH cannot be 'PATH' in an environment script"),
    (
        {"variables": (("MAX_JOBS", "9"),)},
        "environment.MAX_JOBS cannot be 'MAX_JOBS' in an environment script",
    ),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_values_are_refused(changes: dict[str, object], message: str) -> None:
    given = {**msgspec.structs.asdict(VALUES), **changes}
    with pytest.raises(UsageError) as caught:
        ScriptValues(**given)
    assert caught.value.what == message


@pytest.mark.parametrize(
    "name", ["HF_HOME", "NCCL_P2P_LEVEL", "https_proxy", "HTTPS_PROXY", "OMP_NUM_THREADS", "LANG"]
)
def test_users_may_set_their_own(name: str) -> None:
    assert settable(name)


def test_what_the_script_itself_sets_is_reserved() -> None:
    """A profile may point a compiler's cache elsewhere, and set nothing else that the script sets."""
    own = set(settings_of(msgspec.structs.replace(VALUES, variables=())).names)
    assert [name for name in own - {row.variable for row in consumers()} if settable(name)] == []
    for row in reserved_rows():
        assert row.why and row.source and row.as_of


def test_each_variable_has_one_row_and_its_source() -> None:
    rows = consumers()
    assert len({row.variable for row in rows}) == len(rows)
    for row in rows:
        assert row.package and row.version and row.file
        assert not Path(row.value).is_absolute()
        assert (row.kind is Kind.ARCH_LIST) == ("{" in row.value)


@pytest.mark.parametrize(
    ("arch", "torch", "flashinfer", "cute"),
    [
        ("12.0a", "12.0a", "12.0a", "sm_120a"),
        ("12.1f", "12.1", "12.1f", "sm_121f"),
        ("9.0a", "9.0a", "9.0a", "sm_90a"),
        ("8.9", "8.9", "8.9", "sm_89"),
    ],
)
def test_each_reader_gets_the_architecture_in_its_own_form(
    arch: str, torch: str, flashinfer: str, cute: str, tmp_path: Path
) -> None:
    env = process_environment(msgspec.structs.replace(VALUES, arch=arch), tmp_path, {})
    assert env["TORCH_CUDA_ARCH_LIST"] == torch
    assert env["FLASHINFER_CUDA_ARCH_LIST"] == env["TVM_FFI_CUDA_ARCH_LIST"] == flashinfer
    assert env["CUTE_DSL_ARCH"] == cute


def test_caches_of_two_toolchains_never_meet(tmp_path: Path) -> None:
    caches = {row.variable for row in consumers() if row.kind is Kind.CACHE_DIR}
    one = process_environment(msgspec.structs.replace(VALUES, variables=()), tmp_path, {})
    two = process_environment(msgspec.structs.replace(VALUES, variables=(), toolchain="f" * 16), tmp_path, {})
    assert {one[name] for name in caches}.isdisjoint(two[name] for name in caches)


def test_a_path_that_no_list_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a path that PATH cannot hold"):
        process_environment(VALUES, tmp_path / "a:b", {})


def test_every_touched_variable_is_named_once() -> None:
    names = settings_of(VALUES).names
    assert len(set(names)) == len(names)


def test_the_fingerprint_follows_the_text() -> None:
    """It decides whether a build has something to do, so it changes with whatever would change the script."""
    values = ScriptValues(toolchain="0" * 16, arch="12.0a", memory_per_job=1 << 32, site_packages="lib")
    changed = [
        msgspec.structs.replace(values, arch="12.1a"),
        msgspec.structs.replace(values, memory_per_job=1 << 31),
        msgspec.structs.replace(values, variables=(("SGLANG_LOG_LEVEL", "debug"),)),
        msgspec.structs.replace(values, prompt="another"),
    ]
    assert fingerprint(values) == fingerprint(values)
    assert len({fingerprint(v) for v in [values, *changed]}) == 5
    assert len({render_script(v) for v in [values, *changed]}) == 5
