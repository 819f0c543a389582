"""Tiny wheels, made by the tests. Real files for real installers, in place of mocks."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


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
