"""What an index says is input of others: it is typed and bounded where it enters, and believed for that index alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envspec.check.match import match
from envspec.host.python import ChosenPython
from envspec.lock.resolve import resolve
from envspec.lock.targets import Target
from envspec.profile import Profile, read_profile
from envspec.profile.model import Index
from envspec.report.errors import EnvspecError, ExternalError
from envspec.uv.run import Uv
from envspec.wheels.access import Credentials, IndexAccess, index_access, realm_of
from envspec.wheels.cache import cache_dir, entry, keep_bytes, read_bytes
from envspec.wheels.file import ResolvedFile
from envspec.wheels.index import listed, releases
from envspec.wheels.metadata import fetch_metadata
from tests.support.index import LoopbackIndex, serve_index
from tests.support.wheels import make_wheel

PAGE = "https://index.example/simple/app/"
HASH = "ab" * 32
GOOD: dict[str, Any] = {
    "filename": "app-1.0-py3-none-any.whl",
    "url": "../../files/app-1.0-py3-none-any.whl",
    "hashes": {"sha256": HASH},
    "size": 12,
    "upload-time": "2026-05-01T10:00:00.123Z",
}


def profile_of(directory: Path, url: str, name: str = "internal") -> Profile:
    path = directory / "p.toml"
    path.write_text(
        f'[gpu]\narch = "12.0a"\n[packages]\napp = "*"\n[resolve]\nmachines = ["x86_64"]\n'
        f'[[index]]\nname = "{name}"\nurl = "{url}"\ndefault = true\n'
    )
    return read_profile(path)


def test_a_good_row_is_taken_as_it_is() -> None:
    assert listed(PAGE, GOOD["filename"], GOOD["url"], HASH.upper(), 12, GOOD["upload-time"]) == ResolvedFile(
        filename="app-1.0-py3-none-any.whl",
        url="https://index.example/files/app-1.0-py3-none-any.whl",
        sha256=HASH,
        size=12,
        uploaded="2026-05-01T10:00:00",
    )


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "http://[x", "ftp://h/app.whl", "http://h/\x1b]0;x\x07"]
)
def test_an_address_that_is_not_http_is_no_file(url: str) -> None:
    assert listed(PAGE, GOOD["filename"], url, HASH, 1, None) is None


@pytest.mark.parametrize(
    "name", ["../../x.whl", "app.tar.gz", "app-1.0.whl", "", "a/b-1.0-py3-none-any.whl\n"]
)
def test_a_name_that_is_no_wheel_is_no_file(name: str) -> None:
    assert listed(PAGE, name, GOOD["url"], HASH, 1, None) is None


def test_what_is_no_hash_no_size_and_no_time_is_dropped() -> None:
    found = listed(PAGE, GOOD["filename"], GOOD["url"], "../../../../outside", -3, "\x1b]0;PWN\x07")
    assert found is not None and (found.sha256, found.size, found.uploaded) == ("", 0, "")


@pytest.mark.parametrize("key", ["../../outside", "/etc/passwd", "", HASH[:-1], HASH.upper(), HASH + "\n"])
def test_only_a_hash_becomes_a_path_of_the_cache(key: str) -> None:
    assert entry("metadata", key, ".txt") is None
    keep_bytes(entry("metadata", key, ".txt"), b"x")
    with pytest.raises(OSError):
        read_bytes(entry("metadata", key, ".txt"))


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["../../x", "file:///etc/passwd", "http://[x", "\x1b[2J", "9" * 40, HASH, GOOD["filename"]]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.dictionaries(st.sampled_from([*GOOD, "yanked"]), VALUES).map(lambda changed: {**GOOD, **changed})
ANSWERS = (
    st.lists(ROWS, max_size=4).map(lambda rows: json.dumps({"files": rows}).encode())
    | VALUES.map(lambda value: json.dumps({"files": value}).encode())
    | st.binary(max_size=60)
    | st.integers(1, 3000).map(lambda depth: b'{"files":' + b"[" * depth)
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("hostile")
    make_wheel(directory / "wheels", "app", "1.0")
    with serve_index(directory / "wheels") as index:
        yield directory, index, profile_of(directory, index.url)


@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(answer=ANSWERS)
def test_whatever_an_index_answers(
    hostile: tuple[Path, LoopbackIndex, Profile], answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, index, profile = hostile
    monkeypatch.setattr("envspec.wheels.index.index_of", lambda *_: index.url)
    index.answer = answer
    try:
        found = releases("app", Uv(), Path("/"), profile)
    except ExternalError as error:
        assert error.code == "network"
        return
    for file in (file for files in found.values() for file in files):
        assert realm_of(file.url) and file.url.isprintable()
        assert file.sha256 == "" or (len(file.sha256) == 64 and int(file.sha256, 16) >= 0)
        assert file.uploaded.isprintable() and 0 <= file.size < 1 << 40


def test_the_index_of_the_profile_gets_the_credentials_that_uv_gets(
    tmp_path: Path, python: ChosenPython, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_INDEX_MY_INDEX_USERNAME", "joe")
    monkeypatch.setenv("UV_INDEX_MY_INDEX_PASSWORD", "open sesame")
    make_wheel(tmp_path / "wheels", "app", "1.0", requires=["torch==2.11.0"])
    make_wheel(tmp_path / "wheels", "torch", "2.11.0")
    with serve_index(tmp_path / "wheels") as index:
        index.credentials = "joe:open sesame"
        profile = profile_of(tmp_path, index.url, "my-index")
        table = match("app", Target("3.12", "x86_64"), Uv(), python.path, 5, profile=profile)
        assert [(row.version, row.declares, row.problem) for row in table.rows] == [("1.0", "==2.11.0", "")]
        assert any(path.endswith(".whl") for path in index.asked)


@pytest.mark.parametrize("status", [401, 403])
def test_wrong_credentials_are_named_as_such(
    status: int, tmp_path: Path, python: ChosenPython, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_INDEX_INTERNAL_USERNAME", "joe")
    monkeypatch.setenv("UV_INDEX_INTERNAL_PASSWORD", "wrong")
    make_wheel(tmp_path / "wheels", "app", "1.0")
    with serve_index(tmp_path / "wheels") as index:
        index.credentials, index.refusal = "joe:right", status
        profile = profile_of(tmp_path, index.url)
        with pytest.raises(EnvspecError) as caught:
            resolve(profile, Uv(), python.path)
        assert caught.value.code == "index-refused"
        assert "wrong" not in caught.value.why
        monkeypatch.setattr("envspec.wheels.index.index_of", lambda *_: index.url)
        with pytest.raises(ExternalError) as own:
            releases("app", Uv(), python.path, profile)
        assert own.value.code == "index-refused"
        assert own.value.what.startswith(f"the package index refused the releases of app: {status}")


def test_credentials_stay_with_their_realm() -> None:
    access = index_access(
        (Index(name="in.ternal", url="https://joe:s%20t@host.example/simple"),),
        (),
        {"UV_INDEX_IN_TERNAL_USERNAME": "jim"},
    )
    assert access.credentials == (Credentials("https://host.example:443", "jim", "s t"),)
    assert access.of("https://HOST.example/files/x.whl") is not None
    for other in (
        "http://host.example/x",
        "https://host.example:8443/x",
        "https://host.example.org/x",
        "file:///x",
    ):
        assert access.of(other) is None
    assert "s t" not in repr(access)


def test_one_index_is_not_believed_about_the_files_of_another(tmp_path: Path) -> None:
    make_wheel(tmp_path / "good", "app", "1.0", requires=["torch==2.11.0"])
    make_wheel(tmp_path / "bad", "app", "1.0", requires=["torch==9.9"])
    claimed = "cd" * 32

    def asked(directory: str, scope: str) -> tuple[str, ...]:
        (wheel,) = (tmp_path / directory).glob("*.whl")
        file = ResolvedFile(filename=wheel.name, url=wheel.as_uri(), sha256=claimed, size=0, uploaded="")
        return fetch_metadata([file], IndexAccess(scope))[claimed].requires

    assert asked("bad", "0123456789abcdef") == ("torch==9.9",)
    assert asked("good", "") == ("torch==2.11.0",)
    assert (cache_dir() / "metadata" / f"{claimed}-0123456789abcdef.txt").is_file()
