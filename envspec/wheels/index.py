"""What an index has of a package: every release with its files (PEP 503 and PEP 691).

The index is the one that uv uses: uv is asked, so that mirrors, credentials and profiles agree.
"""

from __future__ import annotations

import html.parser
import json
import re
import tempfile
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from envspec.data import load_toml
from envspec.report.errors import ExternalError, UsageError
from envspec.uv.project import UvProject
from envspec.uv.run import Uv
from envspec.wheels.file import ResolvedFile

_MAX_PAGE = 64 << 20
_TIMEOUT = (10, 60)


def releases(package: str, uv: Uv, python: Path) -> dict[Version, list[ResolvedFile]]:
    """Every release of a package, newest first, with its wheels.

    Raises UsageError `unknown-package`, ExternalError `network` or `offline`.
    """
    if uv.offline:
        raise ExternalError(
            "offline", f"the releases of {package} are on the index, and the network was not to be used"
        )
    page = _page(package, index_of(package, uv, python))
    found: dict[Version, list[ResolvedFile]] = {}
    for file in page:
        try:
            version = parse_wheel_filename(file.filename)[1]
        except InvalidWheelFilename:
            continue
        found.setdefault(version, []).append(file)
    return dict(sorted(found.items(), reverse=True))


def index_of(package: str, uv: Uv, python: Path) -> str:
    """The address of the index from which uv takes a package."""
    with tempfile.TemporaryDirectory(prefix="envspec-index-") as work:
        project = Path(work)
        UvProject(requires_python=">=3.10", requirements=(package,), allow_sdists=True).write(project)
        try:
            uv.lock(project, python, None)
        except UsageError as error:
            raise UsageError(
                "unknown-package", f"the index has no package {package}", why=error.why
            ) from None
        rows = load_toml((project / "uv.lock").read_text(encoding="utf-8")).get("package", [])
    registry = next((r["source"].get("registry", "") for r in rows if r["name"] == package), "")
    if not re.match(r"https?://", registry):
        raise UsageError("unknown-package", f"{package} does not come from a package index")
    return str(registry)


def _page(package: str, index: str) -> list[ResolvedFile]:
    import requests

    from envspec.wheels.remote import shared_session

    url = f"{index.rstrip('/')}/{package}/"
    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
    try:
        answer = shared_session().get(url, headers={"Accept": accept}, timeout=_TIMEOUT, stream=True)
        answer.raise_for_status()
        body = answer.raw.read(_MAX_PAGE, decode_content=True)
    except (requests.RequestException, OSError) as error:
        raise ExternalError(
            "network", f"cannot read the releases of {package}", why=type(error).__name__
        ) from None
    if "json" in answer.headers.get("Content-Type", ""):
        return _from_json(body, url)
    return _from_html(body.decode("utf-8", "replace"), url)


def _from_json(body: bytes, url: str) -> list[ResolvedFile]:
    try:
        rows = json.loads(body)["files"]
    except (ValueError, KeyError, TypeError):
        raise ExternalError(
            "network", "the index answered with something that is not a list of files"
        ) from None
    return [
        ResolvedFile(
            filename=str(row.get("filename", "")),
            url=urljoin(url, str(row.get("url", ""))),
            sha256=str((row.get("hashes") or {}).get("sha256", "")),
            size=int(row.get("size") or 0),
            uploaded=str(row.get("upload-time") or "")[:19],
        )
        for row in rows
        if not row.get("yanked")
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


__all__ = ["index_of", "releases"]
