"""Which names and texts count as secrets."""

from __future__ import annotations

import pytest

from envspec.report.secrets import is_secret, masked_addresses, secrets_of


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "UV_INDEX_INTERNAL_PASSWORD", "UV_INDEX_INTERNAL_USERNAME", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY",
     "TWINE_PASSWORD", "UV_PUBLISH_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "NETRC_PASS", "HTTP_AUTH", "pgpassword"],
)  # fmt: skip
def test_secret_names(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "TOKENIZERS_PARALLELISM",
        "GIT_AUTHOR_NAME",
        "PASSENGER",
        "UV_INDEX_URL",
        "KEYMAP",
        "XAUTHORITY",
    ],
)
def test_other_names(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("see https://u:p@h/x and http://t@h", "see https://***@h/x and http://***@h"),
        ("https://h/x?a=1&access_token=abc&b=2", "https://h/x?a=1&access_token=***&b=2"),
        ("https://h/x?X-Amz-Signature=abc", "https://h/x?X-Amz-Signature=***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("https://h/simple/ and me@h", "https://h/simple/ and me@h"),
    ],
)
def test_addresses(text: str, masked: str) -> None:
    assert masked_addresses(text) == masked


def test_a_password_in_an_address_is_masked_wherever_it_turns_up() -> None:
    secrets = secrets_of({"HTTPS_PROXY": "http://me:p%40ssword@proxy:3128", "A_TOKEN": "ab"})
    assert secrets.masked("p@ssword p%40ssword ab me") == "*** *** ab me"
    assert secrets.masked_variable("A_TOKEN", "ab") == "***"
    assert secrets.masked_variable("A_TOKEN", "") == ""
