"""One site for all tests of a module, and its environments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.site import Environments, TrustSite


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> TrustSite:
    """See TrustSite. Its name is one that scripts get wrong."""
    return TrustSite(tmp_path_factory.mktemp("trust me, größer"))


@pytest.fixture(scope="module")
def environments(site: TrustSite) -> Environments:
    """See Environments."""
    return Environments(site)


@pytest.fixture
def out(environments: Environments) -> Iterator[Path]:
    """An environment with one generation, for one test alone; the next one gets it if it can be repaired."""
    taken = environments.take()
    yield taken
    environments.give_back(taken)
