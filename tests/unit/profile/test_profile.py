"""Reading profiles: what is accepted, and the exact words for what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envspec.data.architectures import Arch
from envspec.data.shipped import find_profile, shipped, shipped_profiles
from envspec.lock import read_lock
from envspec.profile import Profile, read_profile
from envspec.report.errors import EnvspecError, Exit, UsageError
from envspec.report.text import render_error
from tests.support.texts import without_more

MINIMAL = """\
[gpu]
arch = "12.0a"

[packages]
torch = "2.11.0+cu130"
"""


def write(tmp_path: Path, text: str, name: str = "p.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(tmp_path: Path, text: str) -> str:
    """The rendered error, with the temporary directory taken out."""
    with pytest.raises(UsageError) as caught:
        read_profile(write(tmp_path, text))
    assert caught.value.exit is Exit.USAGE
    return without_more(render_error(caught.value)).replace(f"{tmp_path}/", "")


def test_minimal_profile_has_the_defaults(tmp_path: Path) -> None:
    profile = read_profile(write(tmp_path, MINIMAL))
    assert profile.name == "p"
    assert profile.gpu.arch == Arch(12, 0, "a")
    assert profile.gpu.arch.sm == "sm_120a"
    assert profile.python.minors == ("3.10", "3.11", "3.12", "3.13")
    assert profile.python.prefer == "3.12"
    assert profile.machines == ("x86_64", "aarch64")
    assert profile.memory_per_job == 4 << 30
    assert profile.memory_headroom == 0
    assert [(p.requirement, p.local) for p in profile.packages] == [("torch==2.11.0", "cu130")]
    assert profile.cuda is None


@pytest.mark.parametrize("path", shipped_profiles(), ids=lambda p: p.stem)
def test_shipped_profiles_are_valid(path: Path) -> None:
    assert read_profile(path).cuda is not None


@pytest.mark.parametrize("path", shipped_profiles(), ids=lambda p: p.stem)
def test_shipped_locks_match_their_profiles(path: Path) -> None:
    profile = read_profile(path)
    lock = read_lock(profile.lock_path)
    assert lock is not None
    assert lock.profile_digest == profile.lock_digest
    if len(profile.sources) > 1:  # another GPU takes the same packages
        base = read_lock(profile.sources[-1].with_suffix(".lock"))
        assert base is not None and lock.digest == base.digest


def test_first_profile_is_what_the_project_promises() -> None:
    profile = read_profile(shipped("profiles") / "rtx-pro-6000.toml")
    assert profile.gpu.arch.dotted == "12.0a"
    assert profile.gpu.minimum_driver == "580.65.06"
    assert {p.name: p.specifier for p in profile.packages} == {
        "torch": "==2.11.0",
        "sglang": "==0.5.12.post1",
        "sglang-kernel": "==0.4.2.post2",
        "ninja": "",
    }
    assert profile.cuda is not None and profile.cuda.toolkit == "13.2.1"
    assert profile.exclude_newer == "2026-05-25T00:00:00Z"


def test_shipped_profiles_are_found_by_name() -> None:
    assert find_profile("rtx-pro-6000") == shipped("profiles") / "rtx-pro-6000.toml"
    assert find_profile("nothing-like-it") == Path("nothing-like-it")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("arch =", "archh ="),
            "error[profile-unknown-key]: unknown key gpu.archh\n"
            "  p.toml\n"
            "  gpu.arch has to be there and is not\n"
            "  fix: did you mean 'arch'?\n",
        ),
        (
            ('arch = "12.0a"', ""),
            "error[profile-missing-key]: gpu.arch is missing\n"
            "  p.toml\n"
            '  fix: add it, for example: arch = "12.0a"\n',
        ),
        (
            (
                "[packages]",
                '[[index]]\nname = "a"\nurl = "https://wheels.example/a"\nformat = "flatt"\n[packages]',
            ),
            "error[profile-value]: index[0].format is neither simple nor flat: 'flatt'\n"
            "  p.toml\n"
            "  fix: did you mean 'flat'?\n",
        ),
        (
            ('arch = "12.0a"', 'arch = "12.0a"\nmin-driver = "580"'),
            "error[profile-unknown-key]: unknown key gpu.min-driver\n"
            "  p.toml\n"
            "  gpu has no such key, and a key that is not read would be a wish not granted\n"
            "  fix: did you mean 'minimum-driver'?\n",
        ),
        (
            ('"12.0a"', "12.0"),
            "error[profile-wrong-type]: gpu.arch must be a string, not a number: 12.0\n"
            "  p.toml\n"
            '  fix: put it in quotes: "12.0"\n',
        ),
        (
            ('"12.0a"', '"13.7"'),
            "error[profile-value]: gpu.arch is not an architecture of any released GPU: '13.7'\n"
            "  p.toml\n"
            "  fix: valid here: 7.5, 8.0, 8.6, 8.7, 8.8, 8.9, 9.0, 9.0a, 10.0, 10.0a, 10.0f, 10.3, 10.3a, 10.3f, "
            "11.0, 11.0a, 11.0f, 12.0, 12.0a, 12.0f, 12.1, 12.1a, 12.1f\n",
        ),
        (
            ('"2.11.0+cu130"', '"2.11,0"'),
            "error[profile-value]: packages.torch is not a version: '2.11,0'\n"
            "  p.toml\n"
            '  fix: for example "1.2.3", ">=1.2,<2" or "*"\n',
        ),
        (
            ("torch =", "torch_geometric ="),
            "error[profile-value]: packages.torch_geometric is not spelt as the index spells it\n"
            "  p.toml\n"
            "  fix: did you mean 'torch-geometric'?\n",
        ),
        (
            ("[packages]", '[cuda]\ntoolkit = "13.2.1"\ncomponents = ["nvc"]\n[packages]'),
            "error[profile-value]: cuda.components[0] is not a part of the CUDA toolkit: 'nvc'\n"
            "  p.toml\n"
            "  fix: did you mean 'nvcc'?\n",
        ),
        (
            ("[packages]", "[environment]\nLD_LIBRARY_PATH = 'x'\n[packages]"),
            "error[profile-value]: environment.LD_LIBRARY_PATH belongs to envspec or to the shell "
            "and cannot be set by a profile\n"
            "  p.toml\n",
        ),
        (
            ("[packages]", "[environment]\nHISTFILE = 'x'\n[packages]"),
            "error[profile-value]: environment.HISTFILE belongs to envspec or to the shell "
            "and cannot be set by a profile\n"
            "  p.toml\n",
        ),
        (
            ("[packages]", "[packages]\nninja = '1.*'"),
            "error[profile-value]: packages.ninja is not a version: '1.*'\n"
            "  p.toml\n"
            '  fix: did you mean "==1.*"?\n',
        ),
        (
            ("[packages]", '[cuda]\ntoolkit = "12.9.1"\n[packages]'),
            "error[profile-value]: cuda.toolkit is a release whose wheels hold no compiler: '12.9.1'\n"
            "  p.toml\n"
            '  fix: wheels hold nvcc since CUDA 13; for example "13.0.2" or "13.2.1"\n',
        ),
        (
            ("[packages]", '[[index]]\nname = "a"\nurl = "https://wheels.example/a b"\n[packages]'),
            "error[profile-value]: index[0].url is not an address: 'https://wheels.example/a b'\n"
            "  p.toml\n"
            "  fix: write what is not ASCII as %xx, a space as %20\n",
        ),
        (
            (
                "[packages]",
                '[[override]]\nname = "a"\nversion = "1"\nreason = "x\\n# machines: x"\n[packages]',
            ),
            "error[profile-value]: override[0].reason must be one line of text: 'x\\n# machines: x'\n  p.toml\n",
        ),
        (
            ("[packages]", "[python]\nversions = '>=4'\n[packages]"),
            "error[profile-value]: python.versions admits no Python that envspec knows: '>=4'\n"
            "  p.toml\n"
            "  fix: it knows 3.9 to 3.14\n",
        ),
        (
            ("[packages]", "[resolve]\nexclude-newer = 2026-05-25T10:00:00\n[packages]"),
            "error[profile-value]: resolve.exclude-newer has no time zone: 2026-05-25T10:00:00\n"
            "  p.toml\n"
            "  fix: 2026-05-25T10:00:00Z\n",
        ),
    ],
    ids=lambda value: value[1][-60:] if isinstance(value, tuple) else "",
)
def test_refusals_name_path_text_and_remedy(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert refused(tmp_path, MINIMAL.replace(*change)) == message


def test_syntax_error_names_line_and_column(tmp_path: Path) -> None:
    assert refused(tmp_path, '[gpu]\narch = "12.0a\n') == (
        f"error[profile-syntax]: {tmp_path}/p.toml is not valid TOML: a string is not closed before the end of its line\n"
        "  p.toml, line 2, column 14\n"
        '  | arch = "12.0a\n'
        "  |              ^\n"
    ).replace(f"{tmp_path}/", "")


def test_missing_profile_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL, "rtx-pro-6000.toml")
    with pytest.raises(UsageError) as caught:
        read_profile(tmp_path / "rtx-pro-600.toml")
    assert without_more(render_error(caught.value)).replace(f"{tmp_path}/", "") == (
        "error[profile-missing]: there is no profile rtx-pro-600.toml\n"
        "  rtx-pro-600.toml\n"
        "  fix: did you mean 'rtx-pro-6000.toml'?\n"
    )


def test_a_bare_date_is_its_first_moment_in_utc(tmp_path: Path) -> None:
    for text in ("2026-05-25", '"2026-05-25"', "2026-05-25T00:00:00Z", "2026-05-25T02:00:00+02:00"):
        profile = read_profile(write(tmp_path, MINIMAL + f"[resolve]\nexclude-newer = {text}\n"))
        assert profile.exclude_newer == "2026-05-25T00:00:00Z"


def test_extends_merges_tables_and_replaces_lists(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL + "[install]\nprecedence = ['a', 'b']\n", "base.toml")
    profile = read_profile(
        write(
            tmp_path,
            'extends = "base.toml"\n[gpu]\narch = "9.0a"\n[install]\nprecedence = ["c"]\n',
            "child.toml",
        )
    )
    assert profile.gpu.arch.dotted == "9.0a"
    assert [p.name for p in profile.packages] == ["torch"]
    assert profile.precedence == ("c",)
    assert [p.name for p in profile.sources] == ["child.toml", "base.toml"]


def test_a_key_by_its_old_name_means_the_same_and_is_remembered(tmp_path: Path) -> None:
    old = read_profile(write(tmp_path, MINIMAL + "[install]\nwinners = ['a']\n"))
    new = read_profile(write(tmp_path, MINIMAL + "[install]\nprecedence = ['a']\n"))
    assert (old.precedence, old.digest, old.lock_digest) == (("a",), new.digest, new.lock_digest)
    assert old.old_keys == (("install.winners", "install.precedence"),) and new.old_keys == ()


def test_a_key_by_both_names_is_refused(tmp_path: Path) -> None:
    both = MINIMAL + "[install]\nwinners = ['a']\nprecedence = ['b']\n"
    assert refused(tmp_path, both) == (
        "error[profile-value]: install.winners is the old name of install.precedence, and both are there\n"
        "  p.toml\n"
        "  fix: keep install.precedence\n"
    )


@pytest.mark.parametrize(("base", "own"), [("winners", "precedence"), ("precedence", "winners")])
def test_the_extending_profile_wins_whichever_name_it_uses(tmp_path: Path, base: str, own: str) -> None:
    write(tmp_path, MINIMAL + f"[install]\n{base} = ['a']\n", "base.toml")
    path = write(tmp_path, f'extends = "base.toml"\n[install]\n{own} = ["b"]\n', "child.toml")
    assert read_profile(path).precedence == ("b",)


def test_extends_that_turn_in_a_circle_are_refused(tmp_path: Path) -> None:
    write(tmp_path, 'extends = "p.toml"\n', "other.toml")
    assert refused(tmp_path, 'extends = "other.toml"\n').startswith(
        "error[profile-extends]: p.toml extends itself\n"
    )


def test_the_lock_digest_follows_what_decides_the_lock(tmp_path: Path) -> None:
    def digests(text: str) -> tuple[str, str]:
        profile = read_profile(write(tmp_path, text))
        return profile.lock_digest, profile.digest

    plain = digests(MINIMAL)
    assert digests("# a comment\n" + MINIMAL) == plain
    other_gpu = digests(MINIMAL.replace("12.0a", "9.0a"))
    assert other_gpu[0] == plain[0] and other_gpu[1] != plain[1]
    other_torch = digests(MINIMAL.replace("2.11.0", "2.12.0"))
    assert other_torch[0] != plain[0] and other_torch[1] != plain[1]


def test_indexes_are_named_and_relative_ones_belong_to_the_profile(tmp_path: Path) -> None:
    text = MINIMAL + '[[index]]\nname = "local"\nurl = "wheels"\nformat = "flat"\ndefault = true\n'
    index = read_profile(write(tmp_path, text)).indexes[0]
    assert (index.url, index.flat, index.default) == ((tmp_path / "wheels").as_uri(), True, True)


TOML_VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(2**40), 2**40),
        st.text(max_size=20),
        st.sampled_from(["12.0a", "==1", ">=3.10", "nvcc"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "gpu",
        "python",
        "cuda",
        "packages",
        "override",
        "index",
        "resolve",
        "install",
        "jobs",
        "environment",
        "extends",
        "arch",
        "minimum-driver",
        "versions",
        "prefer",
        "toolkit",
        "components",
        "version",
        "extras",
        "exclude-newer",
        "machines",
        "precedence",
        "winners",
        "memory-per-job",
        "name",
        "url",
    ]
) | st.text(max_size=10)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(KEYS, TOML_VALUES | st.dictionaries(KEYS, TOML_VALUES, max_size=4), max_size=5))
def test_any_toml_is_read_or_refused_with_words(tmp_path: Path, values: dict[str, object]) -> None:
    import tomlkit

    try:
        text = tomlkit.dumps(values)
    except (ValueError, tomlkit.exceptions.TOMLKitError):
        return
    try:
        assert isinstance(read_profile(write(tmp_path, text)), Profile)
    except EnvspecError as error:
        assert error.what and error.code
        assert "\x1b" not in render_error(error)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_words(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(raw)
    with pytest.raises(EnvspecError):
        read_profile(path)
