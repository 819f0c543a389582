"""Which torch an extension fits, from symbols alone."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from envspec.torch_abi.export_table import TorchBuild, decode, describe, encode, name_hash
from envspec.torch_abi.exports import TorchExports, UnknownTorch, load
from envspec.torch_abi.names import is_stable_name, torch_names

if sys.version_info >= (3, 11):
    pass
else:
    pass

ERROR = b"_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
# Its parameter for the line became unsigned in 2.10, and the function changed again in 2.14.
CUDA_CHECK_INT = b"_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib"
CUDA_CHECK_UNSIGNED = b"_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb"


def build(release: str, machine: str = "x86_64", cuda: str = "13.0") -> TorchBuild:
    return TorchBuild(
        release=release,
        machine=machine,
        cuda=cuda,
        cxx11_abi=True,
        wheel=f"torch-{release}.whl",
        sha256="0" * 64,
        as_of="2026-11-30",
        libraries={"libtorch_cpu.so": 1},
    )


def table(*rows: tuple[TorchBuild, set[bytes]]) -> TorchExports:
    return TorchExports(tuple(b for b, _ in rows), decode(encode([names for _, names in rows])))


@pytest.fixture
def three() -> TorchExports:
    return table(
        (build("2.10.0"), {b"_ZN2at1aEv", b"_ZN3c101cEv", b"torch_old"}),
        (build("2.10.0", "aarch64", cuda=""), {b"_ZN2at1aEv"}),
        (build("2.11.0"), {b"_ZN2at1aEv", b"aoti_torch_x", b"torch_old"}),
        (build("2.11.2"), {b"_ZN2at1aEv", b"_ZN2at1bEv", b"aoti_torch_x", b"torch_old"}),
    )


def test_missing_names_are_torchs_own_and_sorted(three: TorchExports) -> None:
    wanted = [b"_ZN3c101cEv", b"_ZN2at1bEv", b"_ZN2at1aEv", b"_ZSt4cout", b"malloc", b"_ZN5thing1fEv"]
    assert three.missing(wanted, "2.10.0", "x86_64") == (b"_ZN2at1bEv",)
    assert three.missing(wanted, "2.11.0+cu130", "x86_64") == (b"_ZN2at1bEv", b"_ZN3c101cEv")


def test_releases_that_export_a_name(three: TorchExports) -> None:
    assert three.releases("x86_64") == ("2.10.0", "2.11.0", "2.11.2")
    assert three.releases_exporting(b"_ZN2at1bEv", "x86_64") == ("2.11.2",)
    assert three.releases_exporting(b"aoti_torch_x", "x86_64") == ("2.11.0", "2.11.2")
    assert three.releases_exporting(b"nothing", "x86_64") == ()
    assert three.fitting_releases([b"_ZN2at1aEv", b"aoti_torch_x", b"printf"], "x86_64") == (
        "2.11.0",
        "2.11.2",
    )
    assert three.fitting_releases([b"printf"], "x86_64") == three.releases("x86_64")


def test_a_build_without_cuda_is_not_blamed(three: TorchExports) -> None:
    assert three.missing([b"_ZN3c101cEv", b"_ZN2at1bEv"], "2.10.0", "aarch64") == (b"_ZN2at1bEv",)
    assert three.releases_exporting(b"_ZN3c101cEv", "aarch64") == ("2.10.0",)


@pytest.mark.parametrize(
    ("release", "nearest"),
    [
        ("2.11.0", "2.11.0"),
        ("2.11.0+cu130", "2.11.0"),
        ("2.11.1", "2.11.0"),
        ("2.11.9", "2.11.2"),
        ("2.12.0", None),
        ("2.10.0rc1", "2.10.0"),
        ("nightly", None),
    ],
)
def test_the_nearest_release(three: TorchExports, release: str, nearest: str | None) -> None:
    assert three.nearest(release, "x86_64") == nearest


def test_an_unknown_release_is_said_to_be_unknown(three: TorchExports) -> None:
    with pytest.raises(UnknownTorch, match=r"torch 2\.99\.0 for x86_64"):
        three.missing([ERROR], "2.99.0", "x86_64")
    with pytest.raises(UnknownTorch):
        three.missing([ERROR], "2.11.0", "aarch64")


def test_the_stable_abi(three: TorchExports) -> None:
    assert three.is_stable_only([b"aoti_torch_x", b"torch_old", b"malloc", b"_ZSt4cout"])
    assert three.is_stable_only([b"aoti_torch_aten_fill__Scalar"])
    assert not three.is_stable_only([b"aoti_torch_x", b"_ZN2at1aEv"])
    assert is_stable_name(b"torch_library_impl")
    # A C name that begins with torch_ and that no torch exports is somebody else's.
    assert three.missing([b"torch_somebody_elses"], "2.11.0", "x86_64") == ()


def test_which_names_are_torchs() -> None:
    own = {
        ERROR,
        b"_ZTVN3c105ErrorE",
        b"_ZTIN2at6TensorE",
        b"_ZNK2at10TensorBase4sizeEl",
        b"_ZN5torch7LibraryC1Ev",
        b"_ZN4c10d4WorkE",
        b"_ZThn16_N5torch8autograd4NodeD1Ev",
        b"_ZGVN2at1aE",
        b"_Z16THPVariable_WrapN2at10TensorBaseE",
        b"THPVariableClass",
        b"aoti_torch_get_dim",
        b"torch_call_dispatcher",
    }
    others = {
        b"_ZNSt6vectorIN2at6TensorESaIS1_EED1Ev",
        b"_ZN6fbgemm1fEv",
        b"_ZN11torchcodec_1fEv",
        b"_ZN10torchaudio3fooEv",
        b"THP_PyFrame_Clear",
        b"omp_get_num_threads",
        b"PyObject_Call",
        b"",
    }
    assert torch_names(own | others) == own


def test_the_table_survives_writing_and_reading() -> None:
    sets = [{b"a", b"b"}, {b"b"}, set(), {b"c"}]
    names, numbers, masks = decode(encode(sets))
    assert list(names) == sorted(map(name_hash, (b"a", b"b", b"c")))
    assert {h: masks[n] for h, n in zip(names, numbers, strict=True)} == {
        name_hash(b"a"): 1,
        name_hash(b"b"): 3,
        name_hash(b"c"): 8,
    }
    assert encode(sets) == encode(sets)
    assert json.loads(describe([build("2.11.0")]))["builds"][0]["release"] == "2.11.0"


def test_a_damaged_table_is_refused() -> None:
    data = encode([{b"a", b"b"}])
    for damaged in (
        b"",
        b"x" * 100,
        data[:24],
        data[:40],
        data[:-3] + b"xyz",
        data[:24] + b"\xff" * 12 + data[36:],
    ):
        with pytest.raises(ValueError):
            decode(damaged)


def test_more_builds_than_a_mask_holds() -> None:
    with pytest.raises(ValueError, match="64 builds"):
        encode([set()] * 65)


def test_the_shipped_data() -> None:
    torch = load()
    expected = (
        "2.8.0",
        "2.9.0",
        "2.9.1",
        "2.10.0",
        "2.11.0",
        "2.12.0",
        "2.12.1",
        "2.13.0",
        "2.14.0",
        "2.14.1",
    )
    assert torch.releases("x86_64")[:10] == expected
    assert torch.releases("aarch64") == torch.releases("x86_64")
    assert all(b.cxx11_abi and len(b.sha256) == 64 and b.as_of >= "2026-11-30" for b in torch.builds)
    (build,) = (b for b in torch.builds if (b.release, b.machine) == ("2.11.0", "x86_64"))
    assert (build.cuda, build.libraries["libtorch_cpu.so"]) == ("13.0", 77895)
    assert {b.release for b in torch.builds if not b.cuda} == {"2.8.0", "2.9.0", "2.9.1", "2.10.0"}
    assert torch.releases_exporting(CUDA_CHECK_INT, "x86_64") == ("2.8.0", "2.9.0", "2.9.1")
    unsigned = ("2.10.0", "2.11.0", "2.12.0", "2.12.1", "2.13.0")
    assert torch.releases_exporting(CUDA_CHECK_UNSIGNED, "x86_64") == unsigned
    assert torch.releases_exporting(CUDA_CHECK_UNSIGNED, "aarch64") == unsigned
    assert torch.missing([ERROR, CUDA_CHECK_INT], "2.12.0", "x86_64") == (CUDA_CHECK_INT,)


def test_the_shipped_data_is_small_and_loads_fast() -> None:
    folder = Path(__file__).parents[3] / "envspec" / "data" / "torch_exports"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 4_000_000
    load.cache_clear()
    began = time.process_time()
    load()
    assert time.process_time() - began < 0.2  # 8 ms on an idle machine
