"""What the driver stub takes from the real cuda.h."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import uv

from envspec.toolkit.stub import HEADERS, driver_symbols


@pytest.fixture(scope="module")
def real_include(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers of CUDA 13.2.1 from its wheels."""
    target = tmp_path_factory.mktemp("cuda")
    wheels = ("nvidia-cuda-runtime==13.2.75", "nvidia-cuda-crt==13.2.78")
    subprocess.run(
        [uv.find_uv_bin(), "pip", "install", "-q", "--no-deps", "--target", target, *wheels], check=True
    )
    return target / "nvidia" / "cu13" / "include"


def test_the_real_headers_give_what_the_compiler_sees_in_them(real_include: Path, tmp_path: Path) -> None:
    """The oracle is the C compiler: it lists the prototypes it met, under each face that the header has."""
    seen: set[str] = set()
    faces = ((), ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",), ("-D__CUDA_API_VERSION_INTERNAL",))
    (tmp_path / "empty.c").write_text('#include "cuda.h"\n')
    for face in faces:
        listing = tmp_path / "prototypes"
        subprocess.run(
            ["gcc", "-fsyntax-only", f"-I{real_include}", *face, "-aux-info", listing, "empty.c"],
            cwd=tmp_path,
            check=True,
        )
        for line in listing.read_text().splitlines():
            if " static " not in line:
                seen.update(re.findall(r"\b(cu[A-Z]\w*) \(", line))
    ours = set(driver_symbols((real_include / "cuda.h").read_text()))
    assert ours == seen
    assert len(ours) > 600


def test_the_other_driver_headers_are_read_too(real_include: Path) -> None:
    texts = [(real_include / name).read_text() for name in HEADERS if (real_include / name).is_file()]
    assert {"cuGLGetDevices_v2", "cuEGLStreamProducerConnect", "cuVDPAUGetDevice"} <= set(
        driver_symbols(*texts)
    )
