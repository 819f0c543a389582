"""The driver, the GPUs, and the library between them and a process."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from envspec.data.compatibility import cuda_of_driver, driver_of_cuda
from envspec.doctor.checks import CHECKS, Wanted
from envspec.host.driver import loaded_driver
from envspec.host.gpus import gpus_of_host
from envspec.host.ld_cache import candidates
from envspec.host.machine import Host
from envspec.report.findings import Finding, error, note, unknown, warning

_NVIDIA = "0x10de"
_DISPLAY = "0x03"
_SMALLEST_DRIVER_LIBRARY = 4 << 20
"""Stubs have 20 KB to 300 KB, every libcuda of a driver of this decade more than 10 MB."""


@CHECKS.rule("The NVIDIA driver is loaded, and not older than the profile's minimum.")
def host_driver(host: Host, wanted: Wanted) -> Iterator[Finding]:
    version = loaded_driver(host)
    if version is None:
        yield from _no_driver(host)
        return
    cuda = cuda_of_driver(version)
    brings = f", which brings CUDA {cuda}" if cuda else ""
    needed, whose = _needed(wanted)
    if needed and _older(version, needed):
        yield error(
            "host-driver",
            "driver",
            f"driver {version} is older than {needed}, {whose}",
            evidence=[f"/proc/driver/nvidia/version: {version}{brings}"],
            fix=f"install driver {needed} or newer on the host (a container uses the host's)",
        )
        return
    if wanted.cuda and cuda and Version(cuda).release[:2] < wanted.cuda:
        release = f"{wanted.cuda[0]}.{wanted.cuda[1]}"
        yield note(
            "host-driver",
            "driver",
            f"driver {version}{brings}, runs what CUDA {release} compiles for this GPU, but not its PTX",
            evidence=[f"PTX of CUDA {release} needs driver {driver_of_cuda(release) or 'unknown'}"],
            fix="nothing, as long as kernels are compiled for the GPU itself (sm_..., no +PTX)",
        )
        return
    yield note("host-driver", "driver", f"driver {version}{brings}")


def _needed(wanted: Wanted) -> tuple[str, str]:
    if wanted.profile is not None and wanted.profile.gpu.minimum_driver:
        return wanted.profile.gpu.minimum_driver, "the minimum of the profile (gpu.minimum-driver)"
    if wanted.cuda and (first := driver_of_cuda(f"{wanted.cuda[0]}.0")):
        return first, f"the first driver of CUDA {wanted.cuda[0]}"
    return "", ""


def _older(version: str, needed: str) -> bool:
    try:
        return Version(version) < Version(needed)
    except InvalidVersion:
        return False


def _no_driver(host: Host) -> Iterator[Finding]:
    cards = pci_cards(host)
    if cards:
        yield error(
            "host-driver",
            "driver",
            "there is an NVIDIA GPU, and no NVIDIA driver is loaded",
            evidence=[f"PCI device {card}" for card in cards[:4]]
            + ["/proc/driver/nvidia/version: not there"],
            fix="install the driver and load it (modprobe nvidia), or give the container its GPUs (--gpus all)",
        )
    else:
        yield warning(
            "host-driver",
            "driver",
            "no NVIDIA driver is loaded: environments can be built and probed here, but not served from",
            evidence=["/proc/driver/nvidia/version: not there", "no NVIDIA display device on the PCI bus"],
            fix="on a machine with a GPU: install the driver, or start the container with --gpus all",
        )


def pci_cards(host: Host) -> list[str]:
    """Return the PCI addresses of NVIDIA display devices."""
    base = "/sys/bus/pci/devices"
    return [
        name
        for name in host.names(base)
        if (host.text(f"{base}/{name}/vendor") or "").strip() == _NVIDIA
        and (host.text(f"{base}/{name}/class") or "").startswith(_DISPLAY)
    ]


@CHECKS.rule("The GPUs can be used by this process, and are of the profile's architecture.")
def host_gpu(host: Host, wanted: Wanted) -> Iterator[Finding]:
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        value = host.environ.get(name)
        if value is not None and value.strip().lower() in ("", "-1", "none", "void", "nodevfiles"):
            yield warning(
                "host-gpu", name, f"{name}={value!r} hides every GPU from processes started here",
                fix=f"unset {name}",
            )  # fmt: skip
    if loaded_driver(host) is None:
        return
    missing = [node for node in ("/dev/nvidiactl", "/dev/nvidia-uvm") if not host.exists(node)]
    nodes = [name for name in host.names("/dev") if re.fullmatch(r"nvidia\d+", name)]
    if missing or not nodes:
        absent = missing + ([] if nodes else ["/dev/nvidia0"])
        yield error(
            "host-gpu",
            "/dev",
            f"the driver is loaded, but {', '.join(absent)} cannot be seen here: CUDA will find no GPU",
            fix="in a container: start it with --gpus all (nvidia-container-toolkit); else: nvidia-modprobe -u -c=0",
        )
        return
    yield from _architectures(host, wanted)


def _architectures(host: Host, wanted: Wanted) -> Iterator[Finding]:
    arch = wanted.profile.gpu.arch if wanted.profile is not None else None
    for gpu in gpus_of_host(host):
        name, capability, how = gpu.name, gpu.capability, gpu.source
        if capability is None:
            yield unknown(
                "host-gpu",
                name,
                f"the architecture of {name} is not known here",
                evidence=[how],
                fix="install nvidia-ml-py beside envspec, which asks the driver; or compare gpu.arch by hand",
            )
        elif arch is not None and not arch.runs_on(capability):
            yield error(
                "host-gpu",
                name,
                f"{name} is of architecture {capability[0]}.{capability[1]}, "
                f"the profile compiles for {arch.dotted}",
                evidence=[how],
                fix=f'gpu.arch = "{capability[0]}.{capability[1]}{arch.variant}" in the profile, '
                "or serve on another GPU",
            )
        else:
            yield note("host-gpu", name, f"{name}, architecture {capability[0]}.{capability[1]}")


@CHECKS.rule("The libcuda.so.1 that a process would load belongs to the driver: no stub, no compat package.")
def host_libcuda(host: Host, wanted: Wanted) -> Iterator[Finding]:
    driver = loaded_driver(host)
    found = list(candidates(host, "libcuda.so.1"))
    if not found:
        if driver is not None:
            yield error(
                "host-libcuda",
                "libcuda.so.1",
                f"driver {driver} is loaded, and the loader finds no libcuda.so.1",
                evidence=["looked in LD_LIBRARY_PATH, in ldconfig's cache and in the system's directories"],
                fix="in a container: start it with --gpus all and NVIDIA_DRIVER_CAPABILITIES=compute,utility; else: ldconfig",
            )
        return
    path, why = found[0]
    real = host.real(path)
    others = [f"then: {other} (from {reason})" for other, reason in found[1:4]]
    if "/stubs/" in path or "/stubs/" in real or _is_small(host, real):
        yield (error if driver is not None else warning)(
            "host-libcuda",
            path,
            f"{path} is a stub for linking; a process that loads it has no driver (CUDA error 34)",
            evidence=[f"found by {why}", f"{real}: {host.size(real)} bytes", *others],
            fix=_out_of(why, path),
        )
        return
    version = re.search(r"libcuda\.so\.(\d{3,4}(?:\.\d+)+)$", real)
    if "/compat/" in real or (version and driver and version[1] != driver):
        yield _compat(path, real, why, version[1] if version else "unknown", driver, others)
        return
    if driver is not None and others:
        yield note("host-libcuda", path, f"{real} is loaded", evidence=[f"found by {why}", *others])


def _is_small(host: Host, real: str) -> bool:
    size = host.size(real)
    return size is not None and size < _SMALLEST_DRIVER_LIBRARY


def _out_of(why: str, path: str) -> str:
    directory = path.rpartition("/")[0]
    if why == "LD_LIBRARY_PATH":
        return f"take {directory} out of LD_LIBRARY_PATH (sglang_env.sh and envspec run leave it out by themselves)"
    return f"remove {directory} from /etc/ld.so.conf.d and run ldconfig"


def _compat(path: str, real: str, why: str, version: str, driver: str | None, others: list[str]) -> Finding:
    if driver is not None and version != "unknown" and _older(version, driver):
        what = (
            f"{path} is of driver {version}, older than the loaded {driver}: CUDA error 803, or old behaviour"
        )
    else:
        what = (
            f"{path} is of a compat package ({version}) over driver {driver or 'none'}: "
            "it works on data centre GPUs only (else CUDA error 804)"
        )
    return warning(
        "host-libcuda",
        path,
        what,
        evidence=[f"found by {why}", f"it is {real}", *others],
        fix=_out_of(why, path) + ", or update the driver",
    )
