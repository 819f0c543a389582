"""What must not be shown: passwords and tokens in addresses and in variables, wherever they turn up in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

import msgspec

MASK = "***"
_SHORTEST = 6
"""Shorter values are masked where they stand, but not looked for in other texts: `1` would mask half of them."""

# Words that the names of variables with secrets have in common, as uv (UV_INDEX_NAME_PASSWORD, UV_PUBLISH_TOKEN), pip,
# twine (TWINE_PASSWORD), AWS (AWS_SECRET_ACCESS_KEY), GitHub (GH_TOKEN) and Hugging Face (HF_TOKEN) name theirs. Index
# servers take tokens for user names, too.
_NAME = re.compile(
    r"PASS(?:WORD|WD|PHRASE)?(?![A-Z])|SECRET|TOKEN(?!IZ)|CREDENTIAL|COOKIE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|(?<![A-Z])AUTH(?![A-Z])"
    r"|^UV_INDEX_.*_USERNAME$|^UV_PUBLISH_USERNAME$"
)
_USER_INFO = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://)([^\s/@?#'\"]*)@")
_QUERY = re.compile(
    r"([?&](?:[\w.-]*(?:token|secret|password|signature|credential|api[-_]?key)[\w.-]*|sig|key|auth)=)[^&\s'\"#]+",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(\bauthorization[\"']?\s*[:=]\s*[\"']?(?:(?:basic|bearer|token)\s+)?)[^\s\"',]+", re.IGNORECASE
)


class Secrets(msgspec.Struct, frozen=True):
    """Holds the values that are masked in every text, beside what looks like a secret by its form."""

    values: tuple[str, ...] = ()

    def masked(self, text: str) -> str:
        """Return the text with three asterisks for each secret."""
        text = masked_addresses(text)
        for value in self.values:
            text = text.replace(value, MASK)
        return text

    def masked_variable(self, name: str, value: str) -> str:
        """Return the value of a variable, which is masked as a whole if the variable's name says that it is a secret."""
        return MASK if value and is_secret(name) else self.masked(value)


def is_secret(name: str) -> bool:
    """Tell whether a variable holds a secret, by its name."""
    return _NAME.search(name.upper()) is not None


def masked_addresses(text: str) -> str:
    """Return the text without user names and passwords in addresses, tokens in queries, and authorization headers."""
    text = _USER_INFO.sub(rf"\1{MASK}@", text)
    return _HEADER.sub(rf"\1{MASK}", _QUERY.sub(rf"\1{MASK}", text))


def secrets_of(*environments: Mapping[str, str]) -> Secrets:
    """Return the secrets that environments hold, the longest first: one may be a part of another."""
    found = {
        value for environment in environments for value in _values(environment) if len(value) >= _SHORTEST
    }
    return Secrets(tuple(sorted(found, key=lambda value: (-len(value), value))))


def _values(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if is_secret(name):
            yield value
        for found in _USER_INFO.finditer(value):
            user, separator, password = found[2].partition(":")
            secret = password if separator else user
            yield secret
            yield unquote(secret)
