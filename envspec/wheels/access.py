"""How envspec's own requests reach the indexes that uv uses: with which credentials, and under which name answers are kept.

uv takes the credentials of an index from its address, from `UV_INDEX_NAME_USERNAME` and `UV_INDEX_NAME_PASSWORD`, and from
netrc (uv 0.13.9 documentation, authentication). envspec does the same, but for keyrings. Credentials are sent to the
scheme, host and port of their index and nowhere else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from envspec.profile import Profile
from envspec.profile.model import Index
from envspec.uv.project import sources_of
from envspec.uv.run import Uv

INDEX_VARIABLES = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_CONFIG_FILE",
)
"""The variables by which uv is given other indexes."""


class Credentials(msgspec.Struct, frozen=True):
    """Describes a user name and a password for one realm: `https://host:port`."""

    realm: str
    user: str
    password: str

    def __repr__(self) -> str:
        """Never show what must not be shown."""
        return f"Credentials({self.realm!r})"


class IndexAccess(msgspec.Struct, frozen=True):
    """Holds the indexes of one profile. `scope` names them in envspec's cache; it is empty for uv's default index.

    What one index says of a file is not believed of another index: the hash that it claims for the file may be false.
    """

    scope: str = ""
    credentials: tuple[Credentials, ...] = ()

    def of(self, url: str) -> Credentials | None:
        """Return the credentials for an address, if an index of the same realm has any."""
        realm = realm_of(url)
        return next((one for one in self.credentials if realm and one.realm == realm), None)


def access_of(profile: Profile | None, uv: Uv) -> IndexAccess:
    """Return the access to the indexes that uv uses for a profile, or for none."""
    indexes = profile.indexes if profile else ()
    sources = sources_of(profile) if profile else ()
    return index_access(indexes, sources, uv.env)


def index_access(
    indexes: tuple[Index, ...], sources: tuple[tuple[str, str], ...], environ: Mapping[str, str]
) -> IndexAccess:
    """Return the access to a profile's indexes and to those that variables name."""
    given = [environ.get(name, "") for name in INDEX_VARIABLES]
    scope = ""
    if indexes or any(given):
        scope = hashlib.sha256(msgspec.json.encode((indexes, sources, given))).hexdigest()[:16]
    found = {one.realm: one for one in _credentials(indexes, environ)}
    return IndexAccess(scope, tuple(found.values()))


def realm_of(url: str) -> str:
    """Return scheme, host and port of an http address; empty for anything else."""
    parts = _split(url)
    if parts is None:
        return ""
    default = 443 if parts.scheme == "https" else 80
    try:
        port = parts.port or default
    except ValueError:
        return ""
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname else None


def _credentials(indexes: tuple[Index, ...], environ: Mapping[str, str]) -> Iterator[Credentials]:
    named = [(index.name, index.url) for index in indexes]
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"):
        for word in environ.get(variable, "").split():
            name, separator, url = word.partition("=")
            named.append((name, url) if separator and "/" not in name else ("", word))
    for name, url in named:
        parts = _split(url)
        if parts is None:
            continue
        key = re.sub(r"[^A-Z0-9]", "_", name.upper())
        user = environ.get(f"UV_INDEX_{key}_USERNAME", "") if name else ""
        password = environ.get(f"UV_INDEX_{key}_PASSWORD", "") if name else ""
        user = user or unquote(parts.username or "")
        password = password or unquote(parts.password or "")
        if user or password:
            yield Credentials(realm_of(url), user, password)
