"""Variables and programs that were there before: which of them win over the environment, and which mislead without it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envspec.data.caller import variables, wheel_library
from envspec.doctor.checks import CHECKS, Wanted
from envspec.host.machine import Host
from envspec.report.findings import Finding, note, warning

_REPLACED = (
    "source sglang_env.sh (or use envspec run), which replaces it; unset it where you start without them"
)
_OURS = "/.envspec/toolchains/"


@CHECKS.rule("No search list holds an empty element, which means the current directory.")
def env_lists(host: Host, wanted: Wanted) -> Iterator[Finding]:
    for name in variables("search-list"):
        elements = host.elements(name)
        if "" not in elements:
            continue
        value = host.environ[name]
        place = "begins with" if value.startswith(":") else "ends with" if value.endswith(":") else "holds"
        yield warning(
            "env-lists",
            name,
            f"{name} {place} an empty element: the current directory is searched, whatever lies in it",
            evidence=[f"{name}={value}"],
            fix=f'write "${{{name}:+${name}:}}/new/directory" where it is extended; '
            "sglang_env.sh cleans PATH, LD_LIBRARY_PATH and LIBRARY_PATH",
        )


@CHECKS.rule("No directory of driver stubs is on LD_LIBRARY_PATH or preloaded.")
def env_stubs(host: Host, wanted: Wanted) -> Iterator[Finding]:
    for element in host.elements("LD_LIBRARY_PATH"):
        if element.rstrip("/").endswith("/stubs"):
            yield warning(
                "env-stubs",
                "LD_LIBRARY_PATH",
                f"LD_LIBRARY_PATH holds {element}: its libcuda.so is for linking, a process that loads it has no GPU",
                fix="take it out; linkers find stubs by -L or LIBRARY_PATH (sglang_env.sh leaves it out by itself)",
            )
    for word in re.split(r"[:\s]+", host.environ.get("LD_PRELOAD", "")):
        if word:
            yield (warning if re.search(r"cuda|nvidia|nccl|torch|stdc\+\+", word) else note)(
                "env-stubs",
                "LD_PRELOAD",
                f"LD_PRELOAD loads {word} into every process, compilers too",
                fix="unset LD_PRELOAD, unless the server needs it (jemalloc, tcmalloc)",
            )


@CHECKS.rule("LD_LIBRARY_PATH holds no other copies of the libraries that the environment's wheels bring.")
def env_libraries(host: Host, wanted: Wanted) -> Iterator[Finding]:
    for element in dict.fromkeys(host.elements("LD_LIBRARY_PATH")):
        if not element.startswith("/") or "/.envspec/" in element:
            continue
        found = [name for name in host.names(element) if wheel_library().fullmatch(name)]
        if found:
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            yield warning(
                "env-libraries",
                "LD_LIBRARY_PATH",
                f"{element} on LD_LIBRARY_PATH holds {', '.join(found[:3])}{more}: they are loaded instead of the wheels' own",
                evidence=["torch finds its libraries by run paths, which LD_LIBRARY_PATH goes before"],
                fix=f"take {element} out of LD_LIBRARY_PATH before the server is started",
            )


@CHECKS.rule("CUDA_HOME and CUDA_PATH are unset, or lead to the environment's toolkit.")
def env_cuda(host: Host, wanted: Wanted) -> Iterator[Finding]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        value = host.environ.get(name, "")
        if not value or _OURS in value:
            continue
        if not host.exists(f"{value}/bin/nvcc"):
            what = "which has no bin/nvcc" if host.is_dir(value) else "which is no directory"
            yield warning(
                "env-cuda",
                name,
                f"{name}={value}, {what}: JITs stop there and look no further",
                fix=_REPLACED,
            )
        else:
            release = toolkit_release(host, value)
            yield note(
                "env-cuda",
                name,
                f"{name}={value} is another toolkit{f', CUDA {release}' if release else ''}",
                evidence=["JITs that are started without the environment compile with it"],
                fix=_REPLACED,
            )
    home, path = host.environ.get("CUDA_HOME", ""), host.environ.get("CUDA_PATH", "")
    if home and path and host.real(home) != host.real(path):
        yield warning(
            "env-cuda",
            "CUDA_PATH",
            f"CUDA_HOME and CUDA_PATH differ: {home}, {path}",
            evidence=["some JITs read the one, some the other"],
            fix=_REPLACED,
        )


def toolkit_release(host: Host, home: str) -> str:
    """Return the release that a toolkit's version.json names, or ""."""
    found = re.search(
        r'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"(\d+\.\d+)', host.text(f"{home}/version.json") or ""
    )
    return found[1] if found else ""


@CHECKS.rule("No other toolkit's nvcc and no ROCm stands on PATH, where JITs look when CUDA_HOME is not set.")
def env_nvcc(host: Host, wanted: Wanted) -> Iterator[Finding]:
    found = host.which("nvcc")
    if found and _OURS not in found:
        real = host.real(found)
        release = toolkit_release(host, real.rpartition("/bin/")[0])
        leads = f" (leads to {real})" if real != found else ""
        yield note(
            "env-nvcc",
            found,
            f"{found}{leads} is another toolkit's nvcc{f', CUDA {release}' if release else ''}",
            evidence=["it is found by `which nvcc`; inside of the environment its own stands before it"],
            fix="start servers inside of the environment: source sglang_env.sh, or envspec run",
        )
    hipcc = host.which("hipcc") or next(
        (path for path in ("/opt/rocm/bin/hipcc",) if host.exists(path)), None
    )
    if hipcc:
        yield warning(
            "env-nvcc",
            hipcc,
            f"{hipcc} is there: JITs that look for ROCm first compile for AMD GPUs",
            evidence=["seen as: hipcc: error: unknown argument, or a HIP header that is not found"],
            fix="take it off PATH, and unset ROCM_HOME and ROCM_PATH, for the server's process",
        )


@CHECKS.rule("No variable adds flags, headers or another compiler to what the JITs call.")
def env_flags(host: Host, wanted: Wanted) -> Iterator[Finding]:
    headers = variables("headers")
    for name in (*variables("flags"), *headers):
        value = host.environ.get(name, "")
        if not value:
            continue
        foreign = name in headers or re.search(
            r"cuda|nvcc|rocm|conda|-ccbin|-arch|-gencode|-allow-unsupported", value
        )
        yield (warning if foreign else note)(
            "env-flags",
            name,
            f"{name}={value} is read by the compilers inside of the environment, too",
            evidence=["headers of another toolkit would win over the environment's"]
            if name in headers
            else [],
            fix=f"unset {name} before the server is started, unless it is meant",
        )


@CHECKS.rule("PYTHONPATH and PYTHONHOME are unset: they put other packages before the locked ones.")
def env_python(host: Host, wanted: Wanted) -> Iterator[Finding]:
    for name in ("PYTHONPATH", "PYTHONHOME"):
        value = host.environ.get(name, "")
        if not value:
            continue
        shadowed = sorted(
            {p for element in host.elements(name) for p in ("torch", "sglang", "triton", "flashinfer")
             if host.is_dir(f"{element}/{p}")}
        )  # fmt: skip
        yield (warning if shadowed or name == "PYTHONHOME" else note)(
            "env-python",
            name,
            f"{name}={value} is searched before the environment's packages",
            evidence=[f"it holds {', '.join(shadowed)}"] if shadowed else [],
            fix=f"unset {name}; sglang_env.sh and envspec run do",
        )
