"""What an index has of a package: every release with its files (PEP 503 and PEP 691).

The index is the one that uv uses: uv is asked, so that mirrors, credentials and profiles agree.
"""

from __future__ import annotations

import html.parser
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urljoin

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from envspec.data import load_toml
from envspec.fs import file_sha256
from envspec.profile import Profile
from envspec.report.errors import ExternalError, UsageError
from envspec.uv.project import UvProject, sources_of
from envspec.uv.run import Uv
from envspec.wheels.access import IndexAccess, access_of, realm_of
from envspec.wheels.file import ResolvedFile, local_path

_MAX_PAGE = 64 << 20
_MAX_SIZE = 1 << 40
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)
_TIMEOUT = (10, 60)


def releases(
    package: str, uv: Uv, python: Path, profile: Profile | None = None
) -> dict[Version, list[ResolvedFile]]:
    """Return every release of a package, newest first, with its wheels, from the index that a profile takes it from.

    Raises UsageError `unknown-package`, ExternalError `network`, `offline` or `wheel-unreadable`.
    """
    registry = index_of(package, uv, python, profile)
    if re.match(r"https?://", registry):
        if uv.offline:
            raise ExternalError(
                "offline", f"the releases of {package} are on the index, and the network was not to be used"
            )
        page = _page(package, registry, access_of(profile, uv))
    else:
        page = _directory(package, local_path(registry))
    found: dict[Version, list[ResolvedFile]] = {}
    for file in page:
        try:
            version = parse_wheel_filename(file.filename)[1]
        except InvalidWheelFilename:
            continue
        found.setdefault(version, []).append(file)
    return dict(sorted(found.items(), reverse=True))


def index_of(package: str, uv: Uv, python: Path, profile: Profile | None = None) -> str:
    """Return the address, or the directory, of the index from which uv takes a package. Raises what uv's failures mean."""
    indexes = profile.indexes if profile else ()
    sources = sources_of(profile) if profile else ()
    with tempfile.TemporaryDirectory(prefix="envspec-index-") as work:
        project = Path(work)
        UvProject(
            requires_python=">=3.10",
            requirements=(package,),
            indexes=indexes,
            sources=tuple((name, index) for name, index in sources if name == package),
            allow_sdists=True,
        ).write(project)
        try:
            uv.lock(project, python, None)
        except UsageError as error:
            raise UsageError(
                "unknown-package", f"the index has no package {package}", why=error.why
            ) from None
        rows = load_toml((project / "uv.lock").read_text(encoding="utf-8")).get("package", [])
    registry = next((r["source"].get("registry", "") for r in rows if r["name"] == package), "")
    if not registry:
        raise UsageError("unknown-package", f"{package} does not come from a package index")
    return str(registry)


def _directory(package: str, directory: Path | None) -> list[ResolvedFile]:
    """Return the wheels of a package in a directory, with their hashes."""
    found = []
    for path in sorted(directory.glob("*.whl")) if directory else ():
        try:
            name = parse_wheel_filename(path.name)[0]
        except InvalidWheelFilename:
            continue
        if name == package:
            try:
                digest, size = file_sha256(path), path.stat().st_size
            except OSError as error:
                raise ExternalError(
                    "wheel-unreadable", f"cannot read {path}: {error.strerror}", where=str(path)
                ) from None
            found.append(
                ResolvedFile(filename=path.name, url=path.as_uri(), sha256=digest, size=size, uploaded="")
            )
    return found


def _page(package: str, index: str, access: IndexAccess) -> list[ResolvedFile]:
    import requests
    from urllib3.exceptions import HTTPError

    from envspec.wheels.ranged import refused, shared_session

    url = f"{index.rstrip('/')}/{package}/"
    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
    try:
        session = shared_session(access)
        with session.get(url, headers={"Accept": accept}, timeout=_TIMEOUT, stream=True) as answer:
            if answer.status_code in (401, 403, 407):
                raise refused(f"the releases of {package}", f"{answer.status_code} {answer.reason}")
            answer.raise_for_status()
            body = answer.raw.read(_MAX_PAGE, decode_content=True)
            at, kind = answer.url or url, answer.headers.get("Content-Type", "")
    except (requests.RequestException, HTTPError, OSError, ValueError) as error:
        raise ExternalError(
            "network", f"cannot read the releases of {package}", why=type(error).__name__
        ) from None
    if "json" in kind:
        return list(_from_json(body, at))
    return list(_from_html(body.decode("utf-8", "replace"), at))


class _Answer(msgspec.Struct):
    """A page of PEP 691; each row is read by itself, so that one that is wrong does not hide the others."""

    files: list[msgspec.Raw]


class _Row(msgspec.Struct, rename="kebab"):
    filename: str
    url: str
    hashes: dict[str, str] = {}
    size: int | None = None
    upload_time: str | None = None
    yanked: bool | str = False


def _from_json(body: bytes, page: str) -> Iterator[ResolvedFile]:
    try:
        raws = msgspec.json.decode(body, type=_Answer).files
    except (msgspec.DecodeError, RecursionError):
        raws = [msgspec.Raw(b"null")]
    rows = [row for row in map(_row, raws) if row is not None]
    if raws and not rows:
        raise ExternalError("network", "the index answered with something that is not a list of files")
    for row in rows:
        if not row.yanked:
            file = listed(
                page, row.filename, row.url, row.hashes.get("sha256", ""), row.size, row.upload_time
            )
            if file is not None:
                yield file


def _row(raw: msgspec.Raw) -> _Row | None:
    try:
        return msgspec.json.decode(raw, type=_Row)
    except (msgspec.DecodeError, RecursionError):
        return None


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and given.get("href") and "data-yanked" not in given:
            self.found.append(str(given["href"]))


def _from_html(text: str, page: str) -> Iterator[ResolvedFile]:
    parser = _Links()
    parser.feed(text)
    for link in parser.found:
        address, _, fragment = link.partition("#")
        name = unquote(address.partition("?")[0]).rsplit("/", 1)[-1]
        digest = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
        file = listed(page, name, address, digest, None, None)
        if file is not None:
            yield file


def listed(
    page: str, filename: str, url: str, sha256: str, size: int | None, uploaded: str | None
) -> ResolvedFile | None:
    """Return a file of an index page in a form that the rest may rely on; None for one that is no wheel at an http address.

    An index is input of others: a hash is 64 hexadecimal digits or none, a size a plausible number or 0, a time of upload a
    time or empty.
    """
    try:
        parse_wheel_filename(filename)
        address = urljoin(page, url)
    except (InvalidWheelFilename, ValueError):
        return None
    if not realm_of(address) or not address.isprintable():
        return None
    digest = sha256.lower()
    return ResolvedFile(
        filename=filename,
        url=address,
        sha256=digest if re.fullmatch(r"[0-9a-f]{64}", digest) else "",
        size=size if size is not None and 0 <= size < _MAX_SIZE else 0,
        uploaded=uploaded[:19] if uploaded and _MOMENT.match(uploaded) else "",
    )


__all__ = ["index_of", "listed", "releases"]
