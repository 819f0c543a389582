"""Every rule: one set that fires it and one that does not. Facts are values, so no wheel is needed here."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import msgspec
import pytest
from packaging.version import Version

from envspec.check.collect import toolkit_releases
from envspec.check.facts import CheckInput, Gpu, IndexNotices, RequiredBy, Selection, ToolkitReleases
from envspec.check.rules import RULES
from envspec.cli.render import render_report
from envspec.data.architectures import parse_arch
from envspec.host.cxx import HostCompiler
from envspec.lock import Lock, LockedFile, LockedPackage, OverrideRecord
from envspec.lock.selection import Selected
from envspec.lock.targets import Target
from envspec.profile import Profile
from envspec.report.findings import Finding, Severity, report
from envspec.report.rules import Missing, run_rules
from envspec.wheels.file import Library, SetContents, WheelContents, WheelMember
from tests.support.texts import without_more

GOOD = {
    "torch": "2.11.0",
    "torchvision": "0.26.0",
    "sglang-kernel": "0.4.2.post2",
    "triton": "3.6.0",
    "flashinfer-python": "0.6.11.post1",
    "flashinfer-cubin": "0.6.11.post1",
    "nvidia-cuda-nvcc": "13.2.78",
    "nvidia-cuda-crt": "13.2.78",
    "nvidia-nvvm": "13.2.78",
    "nvidia-cuda-runtime": "13.2.75",
    "nvidia-cuda-nvrtc": "13.2.78",
    "nvidia-cuda-cccl": "13.2.75",
    "nvidia-nvjitlink": "13.0.88",
    "nvidia-cusparse": "12.6.3.3",
    "cuda-toolkit": "13.0.2",
}
REQUIRED_BY: dict[str, tuple[RequiredBy, ...]] = {
    "torch": (RequiredBy("", "==2.11.0"), RequiredBy("torchvision", "==2.11.0")),
    "sglang-kernel": (RequiredBy("", "==0.4.2.post2"),),
    "cuda-toolkit": (RequiredBy("torch", "==13.0.2"),),
    "nvidia-nvvm": (RequiredBy("nvidia-cuda-nvcc", ""),),
    "nvidia-cuda-nvcc": (RequiredBy("", "==13.2.78"),),
    "nvidia-cuda-runtime": (RequiredBy("cuda-toolkit", "==13.0.96.*", "cudart"),),
}
BLAS_NEW = "_ZN2at4cuda24getCurrentCUDABlasHandleEb"
BLAS_OLD = "_ZN2at4cuda24getCurrentCUDABlasHandleEv"


def wheel(*members: str, **library: Any) -> WheelContents:
    libraries = (Library(**library),) if library else ()
    return WheelContents(members=tuple(WheelMember(m, 1, 1) for m in members), libraries=libraries)


CONTENTS = {
    "sglang-kernel": wheel(path="sgl_kernel/common_ops.abi3.so", torch_imports=(BLAS_OLD,)),
    "nvidia-cuda-nvrtc": wheel("nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cu13/lib/libnvrtc-builtins.so.13.2"),
    "nvidia-nvjitlink": wheel(path="lib/libnvJitLink.so.13", jitlink_exports=("__nvJitLinkCreate_13_0",)),
    "nvidia-cusparse": wheel(path="lib/libcusparse.so.12", jitlink_imports=("__nvJitLinkCreate_13_0",)),
}


class World:
    """A healthy set of facts, and ways to spoil it."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.versions = dict(GOOD)
        self.required_by = dict(REQUIRED_BY)
        self.contents = dict(CONTENTS)
        self.python = "3.12"
        self.no_file: set[str] = set()
        self.sdists: set[str] = set()
        self.requires_python: dict[str, str] = {}
        self.yanked: dict[str, str] = {}
        self.compiler = HostCompiler("gcc", (12, 2), "/usr/bin/c++")
        self.kept_digest = profile.lock_digest
        self.lock_digest = profile.lock_digest
        self.drop: set[type] = set()

    def facts(self) -> dict[type, Any]:
        chosen = {}
        for name, version in self.versions.items():
            suffix = "tar.gz" if name in self.sdists else "whl"
            file = LockedFile(f"{name}-{version}-py3-none-any.{suffix}", "0" * 64)
            package = LockedPackage(name=name, version=version, marker="", files=(file,), via=("profile",))
            chosen[name] = Selected(
                package=package,
                file=None if name in self.no_file else file,
                requires_python=self.requires_python.get(name, ""),
            )
        lock = Lock(
            profile_name="p.toml",
            profile_digest=self.lock_digest,
            python=">=3.10",
            machines=("x86_64",),
            exclude_newer="",
            overrides=(OverrideRecord(name="nvidia-cuda-runtime", version="13.2.75", reason="x"),),
            packages=tuple(one.package for one in chosen.values()),
        )
        facts: dict[type, Any] = {
            CheckInput: CheckInput(self.profile, lock, self.kept_digest),
            Selection: Selection(
                target=Target(self.python, "x86_64"), chosen=chosen, required_by=self.required_by
            ),
            ToolkitReleases: toolkit_releases(chosen),
            SetContents: SetContents(self.contents),
            IndexNotices: IndexNotices(self.yanked),
            HostCompiler: self.compiler,
            Gpu: Gpu(self.profile.gpu.arch, self.profile.gpu.minimum_driver),
        }
        return {kind: Missing("no network") if kind in self.drop else fact for kind, fact in facts.items()}

    def findings(self, allowed: frozenset[str] = frozenset()) -> list[Finding]:
        return list(run_rules(RULES.all(), self.facts(), allowed))

    def pin(self, **versions: str) -> None:
        self.versions.update({name.replace("_", "-"): version for name, version in versions.items()})

    def gpu(self, arch: str | None = None, driver: str | None = None) -> None:
        parsed = parse_arch(arch) if arch else self.profile.gpu.arch
        assert parsed is not None
        gpu = msgspec.structs.replace(self.profile.gpu, arch=parsed)
        if driver is not None:
            gpu = msgspec.structs.replace(gpu, minimum_driver=driver)
        self.profile = msgspec.structs.replace(self.profile, gpu=gpu)

    def change(self, **fields: Any) -> None:
        self.profile = msgspec.structs.replace(self.profile, **fields)
        self.kept_digest = self.lock_digest = self.profile.lock_digest


@pytest.fixture
def world(local_profile: Callable[..., Profile]) -> World:
    profile = local_profile('torch = "2.11.0+cu130"', "[resolve]\nexclude-newer = 2026-05-25\n")
    made = World(profile)
    made.gpu(driver="580.65.06")
    return made


def test_a_healthy_set_has_no_finding(world: World) -> None:
    assert world.findings() == []


def spoil_driver_ptx(w: World) -> None:
    w.change(environment=(("TORCH_CUDA_ARCH_LIST", "12.0+PTX"),))


def spoil_extra_library(w: World) -> None:
    w.versions["nvidia-cublas-cu12"] = "12.8.4.1"
    w.versions["nvidia-cublas"] = "13.1.0.3"
    for name in ("nvidia-cublas-cu12", "nvidia-cublas"):
        w.contents[name] = WheelContents(members=(WheelMember("nvidia/cublas/lib/libcublas.so", 1, 5),))


def spoil_conflict(w: World) -> None:
    w.contents["a"] = WheelContents(members=(WheelMember("x/y.py", 1, 5),))
    w.contents["b"] = WheelContents(members=(WheelMember("x/y.py", 2, 5),))


def spoil_kernels(w: World) -> None:
    w.pin(transformers="5.6.0", kernels="0.17.2")


def spoil_nvrtc(w: World) -> None:
    w.contents["nvidia-cuda-nvrtc"] = wheel("nvidia/cu13/lib/libnvrtc-builtins.so.13.0")


def spoil_nvjitlink(w: World) -> None:
    w.contents["nvidia-nvjitlink"] = wheel(
        path="lib/libnvJitLink.so.13", jitlink_exports=("__nvJitLinkCreate_12_8",)
    )


SPOILT: dict[str, tuple[Severity, Callable[[World], object]]] = {
    "toolkit-mixed": (Severity.ERROR, lambda w: w.pin(nvidia_nvvm="13.5.37")),
    "toolkit-headers": (Severity.ERROR, lambda w: w.pin(nvidia_cuda_runtime="13.0.96")),
    "toolkit-incomplete": (Severity.ERROR, lambda w: w.versions.pop("nvidia-cuda-crt")),
    "toolkit-no-nvcc": (Severity.ERROR, lambda w: w.pin(nvidia_cuda_nvcc="12.9.86")),
    "toolkit-nvrtc-builtins": (Severity.ERROR, spoil_nvrtc),
    "nvjitlink-older": (Severity.ERROR, spoil_nvjitlink),
    "torch-toolkit-major": (
        Severity.ERROR,
        lambda w: w.required_by.update(
            {"nvidia-cuda-runtime-cu12": (RequiredBy("torch", "==12.8.90"),), "cuda-toolkit": ()}
        ),
    ),
    "cuda-majors-mixed": (Severity.ERROR, spoil_extra_library),
    "arch-nvcc": (
        Severity.ERROR,
        lambda w: w.pin(
            nvidia_cuda_nvcc="12.6.85",
            nvidia_cuda_crt="12.6.85",
            nvidia_nvvm="12.6.85",
            nvidia_cuda_runtime="12.6.77",
        ),
    ),
    "arch-triton": (Severity.ERROR, lambda w: (w.gpu("12.1a"), w.pin(triton="3.5.0"))),
    "host-compiler": (
        Severity.ERROR,
        lambda w: setattr(w, "compiler", HostCompiler("gcc", (16, 1), "/usr/bin/c++")),
    ),
    "torch-abi": (Severity.ERROR, lambda w: w.pin(torch="2.12.0", torchvision="0.27.0")),
    "wheel-missing": (Severity.ERROR, lambda w: w.no_file.add("triton")),
    "sdist": (Severity.ERROR, lambda w: w.sdists.add("triton")),
    "requires-python": (Severity.ERROR, lambda w: w.requires_python.update(triton="<3.12")),
    "yanked": (Severity.WARNING, lambda w: w.yanked.update({"triton==3.6.0": 'reason: "broken"'})),
    "companions": (Severity.ERROR, lambda w: w.pin(flashinfer_cubin="0.6.10")),
    "requirement-broken": (
        Severity.ERROR,
        lambda w: w.required_by.update(torch=(RequiredBy("torchvision", "==2.10.0"),)),
    ),
    "file-conflict": (Severity.ERROR, spoil_conflict),
    "driver-minimum": (Severity.ERROR, lambda w: w.gpu(driver="570.26")),
    "driver-ptx": (Severity.ERROR, spoil_driver_ptx),
    "lock-outdated": (Severity.ERROR, lambda w: setattr(w, "lock_digest", "sha256:other")),
    "local-label-claim": (
        Severity.ERROR,
        lambda w: w.required_by.update({"cuda-toolkit": (RequiredBy("torch", "==12.9.1"),)}),
    ),
    "floating": (Severity.WARNING, lambda w: w.change(exclude_newer="")),
    "known-broken": (Severity.ERROR, spoil_kernels),
    "profile-old-key": (
        Severity.NOTE,
        lambda w: w.change(old_keys=(("install.winners", "install.precedence"),)),
    ),
}


@pytest.mark.parametrize("code", SPOILT)
def test_a_spoilt_set_fires_the_rule(code: str, world: World) -> None:
    severity, spoil = SPOILT[code]
    spoil(world)
    fired = [f for f in world.findings() if f.code == code]
    assert [f.severity for f in fired] == [severity]
    assert fired[0].fix and fired[0].message and fired[0].subject


def test_every_rule_is_fired_by_some_set() -> None:
    assert {r.code for r in RULES.all()} == set(SPOILT)


def test_without_facts_the_answer_is_unknown_and_says_why(world: World) -> None:
    world.drop = {SetContents}
    unknown = [f for f in world.findings() if f.severity is Severity.UNKNOWN]
    assert sorted(f.code for f in unknown) == [
        "cuda-majors-mixed",
        "file-conflict",
        "nvjitlink-older",
        "toolkit-nvrtc-builtins",
        "torch-abi",
    ]
    assert {f.evidence for f in unknown} == {("no network",)}


def test_an_allowed_code_becomes_a_note(world: World) -> None:
    world.pin(nvidia_nvvm="13.5.37")
    (found,) = world.findings(frozenset({"toolkit-mixed"}))
    assert found.severity is Severity.NOTE
    assert found.message.startswith("allowed: nvidia-nvvm 13.5.37 does not belong")


def test_the_cutlass_dsl_may_bring_both_majors(world: World) -> None:
    world.versions |= {"nvidia-cutlass-dsl-libs-cu12": "4.8.0", "nvidia-cutlass-dsl-libs-cu13": "4.8.0"}
    assert world.findings() == []


def test_a_declared_precedence_makes_the_conflict_a_note(world: World) -> None:
    spoil_conflict(world)
    world.change(precedence=("a",))
    assert [(f.code, f.severity, f.subject) for f in world.findings()] == [
        ("file-conflict", Severity.NOTE, "a")
    ]


@pytest.mark.parametrize(
    ("older", "newer", "severity"),
    [
        ("nvidia/cublas/lib/libcublas.so.12", "nvidia/cu13/lib/libcublas.so.13", Severity.NOTE),
        ("nvidia/curand/lib/libcurand.so.10", "nvidia/cu13/lib/libcurand.so.10", Severity.WARNING),
        ("nvidia/nccl/lib/libnccl.so.2", "nvidia/nccl/lib/libnccl.so.2", Severity.ERROR),
    ],
)
def test_two_majors_by_their_files(world: World, older: str, newer: str, severity: Severity) -> None:
    world.versions |= {"nvidia-cublas-cu12": "12.8.4.1", "nvidia-cublas": "13.1.0.3"}
    for name, path in (("nvidia-cublas-cu12", older), ("nvidia-cublas", newer)):
        world.contents[name] = WheelContents(members=(WheelMember(path, 1, 5),))
    assert [(f.code, f.severity) for f in world.findings()] == [("cuda-majors-mixed", severity)]


def test_headers_of_the_other_major_are_no_part_of_the_toolkit(world: World) -> None:
    world.versions["nvidia-cuda-runtime-cu12"] = "12.8.90"
    world.contents["nvidia-cuda-runtime-cu12"] = WheelContents(members=(WheelMember("a/x.h", 1, 5),))
    world.contents["nvidia-cuda-runtime"] = WheelContents(members=(WheelMember("b/x.h", 1, 5),))
    assert [(f.code, f.severity) for f in world.findings()] == [("cuda-majors-mixed", Severity.NOTE)]


def test_a_declared_range_decides_before_the_table(world: World) -> None:
    world.pin(torch="2.15.0", torchvision="0.29.2")
    world.required_by["torch"] = (RequiredBy("torchvision", ">=2.14.0"),)
    assert "companions" not in {f.code for f in world.findings()}
    world.required_by["torch"] = (RequiredBy("torchvision", ">=2.16.0"),)
    assert {"companions", "requirement-broken"} <= {f.code for f in world.findings()}


def test_a_stray_file_is_a_note_that_says_whose_is_taken(world: World) -> None:
    for number, name in enumerate(("a", "b")):
        own = tuple(WheelMember(f"{name}/{part}.py", 1, 5) for part in "xy")
        world.contents[name] = WheelContents(members=(WheelMember("build_backend.py", number, 5), *own))
    (found,) = world.findings()
    assert (found.code, found.severity, found.subject) == ("file-conflict", Severity.NOTE, "b")
    assert found.message == "1 path of a and b differs, outside of what they are imported as; b's is taken"


def test_cccl_may_come_from_flashinfer(world: World) -> None:
    del world.versions["nvidia-cuda-cccl"]
    assert [(f.code, f.severity) for f in world.findings()] == [("toolkit-incomplete", Severity.NOTE)]


def test_the_dependency_path_goes_down_to_the_profile(world: World) -> None:
    world.pin(nvidia_nvvm="13.5.37")
    (found,) = world.findings()
    assert found.dependency_paths == (
        "nvidia-nvvm 13.5.37 <- nvidia-cuda-nvcc 13.2.78 (any version) <- your profile",
    )


def test_the_whole_text_of_an_abi_finding(world: World) -> None:
    world.pin(torch="2.12.0", torchvision="0.27.0")
    world.required_by["torch"] = (RequiredBy("", "==2.12.0"),)
    assert without_more(render_report(report("check", "p.toml", world.findings()))) == (
        "error[torch-abi]: sglang-kernel 0.4.2.post2 cannot be loaded with torch 2.12.0: 1 symbol is missing\n"
        "  missing: at::cuda::getCurrentCUDABlasHandle()\n"
        "    asked for by sgl_kernel/common_ops.abi3.so, in torch 2.8.0 to 2.11.0\n"
        "  the package fits torch 2.8.0 to 2.11.0\n"
        "  sglang-kernel 0.4.2.post2 <- your profile (==0.4.2.post2)\n"
        "  torch 2.12.0 <- your profile (==2.12.0)\n"
        "  fix: pin a version that fits: envspec match sglang-kernel --torch 2.12.0\n"
        "check: 1 error\n"
    )


def test_a_torch_without_table_is_unknown(world: World) -> None:
    world.pin(torch="2.99.0", torchvision="0.26.0")
    world.required_by["torch"] = (RequiredBy("", "==2.99.0"),)
    assert ("torch-abi", Severity.UNKNOWN) in {(f.code, f.severity) for f in world.findings()}


def test_json_has_a_version_and_all_fields(world: World) -> None:
    from envspec.report.findings import to_json
    from scripts.make_schema import schemas

    world.pin(nvidia_nvvm="13.5.37")
    data = json.loads(to_json(report("check", "p.toml", world.findings())))
    jsonschema.validate(data, json.loads(schemas()["report.schema.json"]))
    assert (data["version"], data["command"], data["subject"]) == (1, "check", "p.toml")
    assert list(data["findings"][0]) == [
        "code",
        "severity",
        "subject",
        "message",
        "evidence",
        "dependency_paths",
        "fix",
        "remedies",
    ]
    assert Version(data["findings"][0]["evidence"][1].split()[1]) == Version("13.5.37")
