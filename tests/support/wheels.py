"""Tiny wheels, made by the tests. Real files for real installers, in place of mocks."""

from __future__ import annotations

import base64
import hashlib
import platform
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from envspec.toolkit.shared_object import Processor, shared_object


def make_wheel(
    directory: Path,
    name: str,
    version: str,
    files: Mapping[str, bytes | str] | None = None,
    *,
    requires: Sequence[str] = (),
    tag: str = "py3-none-any",
    extras: Sequence[str] = (),
    scripts: Mapping[str, str] | None = None,
) -> Path:
    """Write a valid wheel and return its path. `files` maps paths in site-packages to contents; `scripts` are entry points."""
    directory.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
    metadata += [f"Provides-Extra: {extra}\n" for extra in extras]
    metadata += [f"Requires-Dist: {requirement}\n" for requirement in requires]
    content: dict[str, bytes] = {
        path: text.encode() if isinstance(text, str) else text
        for path, text in (files or {f"{name.replace('-', '_')}.py": f"version = {version!r}\n"}).items()
    }
    content[f"{info}/METADATA"] = "".join(metadata).encode()
    content[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    )
    if scripts:
        lines = "".join(f"{key} = {value}\n" for key, value in scripts.items())
        content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{lines}".encode()
    rows = [f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in content.items()]
    content[f"{info}/RECORD"] = ("".join(rows) + f"{info}/RECORD,,\n").encode()
    wheel = directory / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in content.items():
            entry = zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0))
            entry.external_attr = (0o755 if "/bin/" in path else 0o644) << 16
            archive.writestr(entry, data)
    return wheel


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


NVCC_STAND_IN = r"""#!/bin/sh
# Stands in for nvcc where only the way around it is tested: the host side of a kernel, from the host compiler.
for last do :; done
echo 'extern "C" int cuInit(unsigned), cudaDeviceSynchronize(); int run() { return cuInit(0) + cudaDeviceSynchronize(); }' |
    exec c++ -x c++ -fPIC -c - -o "$last"
"""


def make_toolkit(directory: Path) -> str:
    """Wheels with the names, versions and shape of CUDA 13.2.1's compiler, in a few kilobytes.

    The return value is the `[packages]` lines that ask for them. For what happens around a compiler; whether kernels
    compile is tested with the real ones.
    """
    cudart = shared_object("libcudart.so.13", ["cudaDeviceSynchronize"], _processor())
    root = "nvidia/cu13"
    parts: dict[str, tuple[str, dict[str, bytes | str]]] = {
        "nvidia-cuda-nvcc": ("13.2.78", {f"{root}/bin/nvcc": NVCC_STAND_IN}),
        "nvidia-cuda-crt": ("13.2.78", {f"{root}/include/crt/host_config.h": "\n"}),
        "nvidia-nvvm": ("13.2.78", {f"{root}/nvvm/bin/cicc": "\n"}),
        "nvidia-cuda-nvrtc": ("13.2.78", {f"{root}/lib/libnvrtc-builtins.so.13.2": "\n"}),
        "nvidia-cuda-cccl": ("13.2.75", {f"{root}/include/nv/target": "\n"}),
        "nvidia-cuda-runtime": (
            "13.2.75",
            {
                f"{root}/include/cuda.h": "CUresult CUDAAPI cuInit(unsigned int Flags);\n",
                f"{root}/lib/libcudart.so.13": cudart,
            },
        ),
    }
    for name, (version, files) in parts.items():
        make_wheel(directory, name, version, files)
    return "".join(f'{name} = "{version}"\n' for name, (version, _) in parts.items())


def _processor() -> Processor:
    if platform.machine() == "aarch64":
        return Processor(e_machine=183, page=0x10000, code=b"\xc0\x03\x5f\xd6", trap=b"\0")
    return Processor(e_machine=62, page=0x1000, code=b"\xc3", trap=b"\xcc")
