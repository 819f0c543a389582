"""What an index has of a package: every release with its files (PEP 503 and PEP 691).

The index is the one that uv uses: uv is asked, so that mirrors, credentials and profiles agree.
"""

from __future__ import annotations

import html.parser
import re
import tempfile
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from envspec.data import load_toml
from envspec.fs import file_sha256
from envspec.profile import Profile
from envspec.report.errors import ExternalError, UsageError
from envspec.uv.project import UvProject, sources_of
from envspec.uv.run import Uv
from envspec.wheels.file import ResolvedFile, local_path

_MAX_PAGE = 64 << 20
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
        page = _page(package, registry)
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


def _page(package: str, index: str) -> list[ResolvedFile]:
    import requests
    from urllib3.exceptions import HTTPError

    from envspec.wheels.ranged import shared_session

    url = f"{index.rstrip('/')}/{package}/"
    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
    try:
        with shared_session().get(url, headers={"Accept": accept}, timeout=_TIMEOUT, stream=True) as answer:
            answer.raise_for_status()
            body = answer.raw.read(_MAX_PAGE, decode_content=True)
            is_json = "json" in answer.headers.get("Content-Type", "")
    except (requests.RequestException, HTTPError, OSError) as error:
        raise ExternalError(
            "network", f"cannot read the releases of {package}", why=type(error).__name__
        ) from None
    return _from_json(body, url) if is_json else _from_html(body.decode("utf-8", "replace"), url)


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    """A file of a JSON page (PEP 691, PEP 700)."""

    filename: str
    url: str
    hashes: dict[str, str] = {}
    size: int | None = None
    upload_time: str | None = None
    yanked: bool | str = False


class _Page(msgspec.Struct, frozen=True):
    files: tuple[_File, ...]


def _from_json(body: bytes, url: str) -> list[ResolvedFile]:
    try:
        page = msgspec.json.decode(body, type=_Page)
    except msgspec.DecodeError:
        raise ExternalError(
            "network", "the index answered with something that is not a list of files"
        ) from None
    return [
        ResolvedFile(
            filename=file.filename,
            url=urljoin(url, file.url),
            sha256=file.hashes.get("sha256", ""),
            size=file.size or 0,
            uploaded=(file.upload_time or "")[:19],
        )
        for file in page.files
        if not file.yanked
    ]


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and given.get("href") and "data-yanked" not in given:
            self.found.append(str(given["href"]))


def _from_html(text: str, url: str) -> list[ResolvedFile]:
    parser = _Links()
    parser.feed(text)
    files = []
    for link in parser.found:
        parts = urlsplit(urljoin(url, link))
        digest = parts.fragment.removeprefix("sha256=") if parts.fragment.startswith("sha256=") else ""
        files.append(
            ResolvedFile(
                filename=unquote(parts.path).rsplit("/", 1)[-1],
                url=parts._replace(fragment="").geturl(),
                sha256=digest,
                size=0,
                uploaded="",
            )
        )
    return files
