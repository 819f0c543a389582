"""One site for all tests of a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.site import TrustSite


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> TrustSite:
    """See TrustSite. Its name is one that scripts get wrong."""
    return TrustSite(tmp_path_factory.mktemp("trust me, größer"))


@pytest.fixture
def out(site: TrustSite, tmp_path: Path) -> Path:
    """An environment of its own for one test."""
    name = f"out {tmp_path.name}"
    return site.made(name)
