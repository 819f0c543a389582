"""Since when the driver has a function, by the toolkit's headers."""

from __future__ import annotations

from pathlib import Path

from envspec.audit.driver import read_driver_api

HEADER = """
typedef CUresult (CUDAAPI *PFN_cuCtxCreate_v3020)(CUcontext *pctx, unsigned int flags, CUdevice_v1 dev);
typedef CUresult (CUDAAPI *PFN_cuCtxCreate_v11040)(CUcontext *pctx);
typedef CUresult(CUDAAPI *PFN_cuGreenCtxCreate_v12040)(CUgreenCtx* phCtx);
typedef CUresult (CUDAAPI *PFN_cuMemcpy_v7000_ptds)(CUdeviceptr dst);
typedef CUresult (CUDAAPI *PFN_cuCtxCreate_v2000)(CUcontext *pctx);
"""


def test_each_form_of_a_function_has_its_release(tmp_path: Path) -> None:
    (tmp_path / "cudaTypedefs.h").write_text(HEADER)
    api = read_driver_api(tmp_path)
    asked = (
        b"cuCtxCreate",
        b"cuCtxCreate_v2",
        b"cuCtxCreate_v3",
        b"cuCtxCreate_v4",
        b"cuMemcpy_ptds",
        b"nvml",
    )
    assert [api.since(name) for name in asked] == [2000, 3020, 11040, None, 7000, None]
    assert api.newest([b"cuCtxCreate_v2", b"cuGreenCtxCreate", b"cuUnknown"]) == ("cuGreenCtxCreate", "12.4")
    assert api.newest([b"cuUnknown"]) is None


def test_without_headers_nothing_is_known(tmp_path: Path) -> None:
    assert read_driver_api(tmp_path).newest([b"cuInit"]) is None
