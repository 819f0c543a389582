"""What a line is by its structure alone, before any knowledge about particular failures is asked.

Compilers, linkers, loaders, shells, resolvers and Python print their errors in forms that have been stable for
decades and that do not depend on what went wrong. The recognisers here know these forms, not the failures: that is
why an error that nobody has an entry for is found all the same. They look at the shape `file:line:column: word:`
rather than at the English word, because compilers speak the user's language.

Every pattern is bounded (no unbounded repetition next to another that can match the same text), so that a hostile
line costs no more than a long one.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from envspec.diagnose import words


class Kind(str, Enum):
    """The kinds of evidence, by who reports them."""

    COMPILER = "compiler"
    LINKER = "linker"
    LOADER = "loader"
    TOOLCHAIN = "toolchain"
    SHELL = "shell"
    DRIVER = "driver"
    CUDA = "cuda"
    MEMORY = "memory"
    RESOLVER = "resolver"
    INSTALLER = "installer"
    NETWORK = "network"
    FILESYSTEM = "filesystem"
    COMMUNICATION = "communication"
    MODEL = "model"
    CONFIGURATION = "configuration"
    CRASH = "crash"
    PYTHON = "python"
    MESSAGE = "message"


BASE = {
    Kind.COMPILER: 80,
    Kind.LINKER: 80,
    Kind.LOADER: 80,
    Kind.TOOLCHAIN: 80,
    Kind.SHELL: 78,
    Kind.DRIVER: 78,
    Kind.CUDA: 74,
    Kind.MEMORY: 78,
    Kind.RESOLVER: 78,
    Kind.INSTALLER: 70,
    Kind.NETWORK: 66,
    Kind.FILESYSTEM: 78,
    Kind.COMMUNICATION: 66,
    Kind.MODEL: 66,
    Kind.CONFIGURATION: 66,
    Kind.CRASH: 50,
    Kind.PYTHON: 60,
    Kind.MESSAGE: 34,
}
"""How near to the cause a kind of evidence is, as a rule. A tool that refuses to work names a cause; an exception
often repeats one; a signal is what is left when nobody could say anything."""


class Sign(NamedTuple):
    """One line that shows a failure."""

    kind: Kind
    text: str
    weight: int = 0
    name: str = ""


_GCC = re.compile(
    r"(?P<file>[^\s:'\"(][^:'\"]{0,500}?):(?P<line>\d{1,7}):(?:(?P<column>\d{1,7}):)?[ \u00a0]"
    r"(?P<word>[^\W\d_][^:\uff1a;=()\[\]{}'\"/]{0,40}?)[ \u00a0]?[:\uff1a](?P<rest>.*)"
)
_EDG = re.compile(
    r"(?P<file>[^\s(][^()\"]{0,500})\((?P<line>\d{1,7})\)(?: \(col\. \d{1,7}\))?: "
    r"(?P<word>(?:catastrophic |fatal |internal |command-line )?error|warning|remark|note)(?: #?[\w-]{1,12})?:? ?: ?(?P<rest>.*)"
)
_MSVC = re.compile(r"(?:^|\s)[\w.\\:/ -]{1,200}(?:\(\d{1,7}\))? ?: (?:fatal )?error (?:C|LNK|D|MSB)\d{4}: ")
_CUDA_TOOL = re.compile(
    r"\b(?P<tool>nvcc|ptxas|nvlink|fatbinary|cicc|cudafe\+\+|cuobjdump|nvdisasm|tileiras)\b[^:;]{0,200}?(?:[,;] ?line "
    r"\d{1,9})? ?[;:]? ?"
    r"(?P<word>fatal|error) {0,3}: (?P<rest>.+)"
)
_BARE_CUDA_TOOL = re.compile(
    r"(?P<tool>ptxas) (?P<where>[^,]{1,300}, line \d{1,9}); (?P<word>fatal|error) {0,3}: (?P<rest>.+)"
)
_COMPILER_DRIVER = re.compile(
    r"(?:^|[\s/])(?P<tool>(?:[\w.]{1,40}-){0,5}(?:gcc|g\+\+|cc|c\+\+|cc1|cc1plus|clang|clang\+\+|icx|icpx|hipcc|as|gfortran|"
    r"lto1|rustc)(?:-\d{1,3}(?:\.\d{1,2})?)?)"
    r"(?P<exe>\.exe)?: (?P<word>[^\W\d_][^:\uff1a;=()\[\]{}'\"/]{0,40}?)[ \u00a0]?[:\uff1a](?P<rest>.+)"
)
_LINKER = re.compile(
    r"(?:^|[\s/])(?P<tool>(?:[\w.]{1,40}-){0,5}(?:ld|collect2|mold|wild)(?:\.\w{1,8})?)(?P<exe>\.exe)?: (?P<rest>.+)"
)
_LINKER_IN_FILE = re.compile(
    r"[^\s:]{1,300}\.(?:o|a|so[\d.]{0,12}|cu|cpp|cc|c)(?::\([^)]{1,100}\)|:[^:\s]{1,200}:\d{1,7})?: (?P<rest>(?:undefined "
    r"reference to|multiple definition of|relocation R_).*)"
)
_LD_SUMMARY = re.compile(r"(?:ld|link|linker)\b.{0,60}\b\d{1,3}\b", re.I)
_LD_NOT_ERRORS = re.compile(
    r"warning|警告|warnung|skipping incompatible|in function|in static|对|NOTE: |note:|设置|: in .{0,200}:$",
    re.I,
)
_LOADER = re.compile(
    r"cannot open shared object file|undefined symbol: |symbol lookup error|version [`'\"][\w.+-]{1,60}['\"`] not found"
    r"|failed to map segment from shared object|cannot allocate memory in static TLS block|wrong ELF class|invalid ELF header"
    r"|file too short|cannot enable executable stack|cannot apply additional memory protection|ELF load command"
    r"|not defined in file .{1,120} with link time reference|cannot make segment writable|ELF file OS ABI invalid|cannot "
    r"dynamically load"
    r"|Unable to load any of \{|Cannot load symbol|unexpected reloc type|only ET_DYN and ET_EXEC can be loaded"
)
_SHELL = re.compile(
    r"^(?:\S{0,60}/)?(?:sh|bash|dash|zsh|ash|env|nohup|sudo|exec|time|timeout|xargs|[\w./-]{1,120}\.sh): (?:line "
    r")?(?:\d{1,6}: )?(?P<rest>.{1,300})"
)
_NOT_STARTED = re.compile(
    r"^/(?:[\w.+-]{1,80}/){0,20}[\w.+-]{1,80}: (?:No such file or directory|(?:command )?not found|Permission denied)$"
)
_SHELL_FAULT = re.compile(
    r"(?:command )?not found|No such file or directory|Permission denied|cannot execute|I/O error|write error|Exec format "
    r"error|bad interpreter|introuvable"
    r"|nicht gefunden|未找到|找不到|没有那个文件|не найден|no encontrad|非法|見つかりません",
    re.I,
)
_EXCEPTION = re.compile(
    r"^(?P<lead>[ \t]{0,12}(?:[-*•>] |\d{1,4}: |\+ Exception Group |\| "
    r")?)(?P<name>(?:[A-Za-z_]\w{0,80}\.){0,9}[A-Za-z_]\w{0,80})(?P<sep>: ?|$)(?P<rest>.*)"
)
_EXCEPTION_SUFFIX = re.compile(
    r"(?:Error|Exception|Failure|Fault|Exit|Interrupt|Abort|Timeout|NotFound|Unavailable|OutOfResources|OutOfMemory|"
    r"Mismatch|Conflict|Empty|Full"
    r"|Impossible|Group|Failed|Invalid|Cancelled|Died|Violation|Missing|Unsupported\w{0,20}|NotSupported)$"
)
_KNOWN_EXCEPTIONS = frozenset(
    (
        "SystemExit",
        "KeyboardInterrupt",
        "StopIteration",
        "StopAsyncIteration",
        "GeneratorExit",
        "Exception",
        "BaseException",
    )
)
_WORDED = re.compile(
    r"^\s{0,8}(?:[\u00d7✗✘x] |❌ ?|\|? ?)?(?:[\w./+-]{1,60}: )?(?P<word>[Ff]atal error|FATAL ERROR|FATAL|[Ff]atal|[Ee]rror|"
    r"ERROR|[Cc]ritical|CRITICAL|E|PANIC|panic)"
    r"(?:\[[\w-]{1,40}\]| [A-Z]{1,4}\d{2,5})?(?:: | -- | - )(?P<rest>\S.*)"
)
_GENERIC_TOOL = re.compile(
    r"^\s{0,8}(?P<tool>ninja|cmake|make|gmake|meson|cargo|git|docker|podman|srun|sbatch|slurmstepd|mpirun|conda|mamba|uv|"
    r"pip|tar|unzip|cp|mv|rm|mkdir|ln|ldconfig|apt-get|E|modprobe|nvidia-container-cli)(?:\[\d{1,4}\])?: (?P<rest>.+)"
)
_ASSERTION = re.compile(r"Assertion (?:failed|error|[`'].{1,300}' failed)|\bCheck failed: ")
_CMAKE = re.compile(r"^CMake Error(?: at (?P<file>[^:]{1,300}):\d{1,7}| in |:| \()")
_UV_HEADLINE = re.compile(r"^\s{0,6}\u00d7 (?P<rest>\S.*)")
_UV_REASON = re.compile(r"^\s{0,8}(?:╰─▶|├─▶|╰─>) (?P<rest>\S.*)")
_CRASH = re.compile(
    r"Segmentation fault|Bus error|Illegal instruction|SIGSEGV|SIGBUS|SIGILL|SIGABRT|SIGFPE|Fatal Python error|Segfault "
    r"encountered|core dumped"
    r"|stack smashing detected|double free or corruption|free\(\): invalid|malloc\(\): |corrupted size vs\. prev_size|pure "
    r"virtual method called"
)
_MLIR = re.compile(
    r"(?:loc\(|<unknown>:\d|[\w./-]{1,200}\.py:\d{1,7}:\d{1,7}): error: |^error: (?:'[\w.]{1,60}' op|Failures have been "
    r"detected while processing an MLIR)|^LLVM ERROR: |^JIT session error: "
)
_RUST = re.compile(r"^error(?:\[E\d{4}\])?: ")

_SOURCE_LIKE = re.compile(
    r"\.(?:c|cc|cpp|cxx|c\+\+|cu|cuh|h|hh|hpp|hxx|inl|inc|ptx|ipp|tcc|s|S|ii|i|f90|F|m|mm|pyx|ld|lds|rs|go|cl|py|tpp|def|td|"
    r"ll|mlir|txt|cppm|ixx|cl|hip|gpu|stub\.c)$|^/|^<|^\.\.?/"
)


def compiler_sign(body: str) -> Sign | None:
    """A diagnostic of a compiler, an assembler or a compiler driver."""
    if "): " in body and (found := _EDG.search(body)):
        return Sign(Kind.COMPILER, found["rest"]) if "error" in found["word"] else None
    if found := _CUDA_TOOL.search(body) or _BARE_CUDA_TOOL.search(body):
        return Sign(Kind.COMPILER, found["rest"], name=found["tool"])
    if found := _GCC.search(body):
        word = words.kind_of(found["word"])
        source = bool(_SOURCE_LIKE.search(found["file"]))
        if word == "error" and (source or found["column"]):
            return Sign(Kind.COMPILER, found["rest"])
        if (
            not word
            and source
            and found["column"]
            and not found["file"].endswith((".py", ".txt"))
            and len(found["word"]) < 24
        ):
            return Sign(Kind.COMPILER, found["rest"], weight=-15)
        if word:
            return None
    if found := _COMPILER_DRIVER.search(body):
        word = words.kind_of(found["word"])
        if word == "error":
            return Sign(Kind.COMPILER, found["rest"], name=found["tool"])
    if ": fatal error: " in body or body.startswith("fatal error: "):
        return Sign(Kind.COMPILER, body.split("fatal error: ", 1)[1])
    if " error " in body and _MSVC.search(body):
        return Sign(Kind.COMPILER, body)
    if "rror: " in body and _MLIR.search(body):
        return Sign(Kind.COMPILER, body)
    if "LLVM ERROR" in body:
        return Sign(Kind.COMPILER, body)
    return None


def linker_sign(body: str) -> Sign | None:
    """A complaint of a linker. That it "returned 1 exit status" is a consequence and not one."""
    if found := _LINKER_IN_FILE.search(body):
        return Sign(Kind.LINKER, found["rest"])
    found = _LINKER.search(body)
    if not found or _LD_NOT_ERRORS.search(found["rest"]):
        return None
    if found["tool"].endswith("collect2") and _LD_SUMMARY.search(found["rest"]):
        return None
    if found["tool"].endswith("ld.so"):
        return None
    return Sign(Kind.LINKER, found["rest"])


def loader_sign(body: str) -> Sign | None:
    """The dynamic loader could not load a library or resolve a symbol."""
    if found := _LOADER.search(body):
        return Sign(Kind.LOADER, body[found.start() :])
    return None


def shell_sign(body: str) -> Sign | None:
    """A shell, or something that starts programs, could not start one."""
    if _NOT_STARTED.match(body):
        return Sign(Kind.SHELL, body)
    found = _SHELL.search(body)
    if found and _SHELL_FAULT.search(found["rest"]):
        return Sign(Kind.SHELL, found["rest"])
    return None


def exception_parts(body: str) -> tuple[str, str, bool] | None:
    """Name, message and whether it is written like an entry of a list, of a line that ends a Python traceback."""
    found = _EXCEPTION.match(body)
    if not found:
        return None
    name = found["name"]
    last = name.rsplit(".", 1)[-1]
    if not (last[:1].isupper() or "." in name or name.endswith("error")):
        return None
    if last not in _KNOWN_EXCEPTIONS and not _EXCEPTION_SUFFIX.search(last):
        return None
    if found["sep"] == "" and (found["lead"].strip() or (" " in found["rest"])):
        return None
    return name, found["rest"], bool(found["lead"].strip())


def crash_sign(body: str) -> Sign | None:
    """The process was ended by a signal, or ended itself in native code."""
    if _CRASH.search(body):
        return Sign(Kind.CRASH, body)
    return None


def resolver_sign(body: str) -> Sign | None:
    """uv's chain of reasons: the headline says that it failed, the first arrow says why."""
    if found := _UV_REASON.match(body):
        rest = found["rest"]
        if rest.startswith(("See above", "[", "See ")):
            return None
        return Sign(Kind.RESOLVER if "depend" in rest or "require" in rest else Kind.INSTALLER, rest)
    return None


def worded_sign(body: str) -> Sign | None:
    """A line that begins with a word for error, printed by a tool of which nothing else is known."""
    if found := _ASSERTION.search(body):
        return Sign(Kind.MESSAGE, body[found.start() :], weight=20)
    if found := _CMAKE.match(body):
        return Sign(Kind.TOOLCHAIN, body, weight=-14)
    if found := _UV_HEADLINE.match(body):
        return Sign(Kind.INSTALLER, found["rest"], weight=-12)
    if _RUST.match(body):
        return Sign(Kind.MESSAGE, body.split(": ", 1)[1], weight=16)
    if found := _WORDED.match(body):
        return Sign(Kind.MESSAGE, found["rest"], weight=12)
    if (found := _GENERIC_TOOL.match(body)) and re.search(
        r"error|fatal|cannot|not found|No such|denied|failed|No space|unable", found["rest"]
    ):
        return Sign(Kind.MESSAGE, found["rest"], weight=12)
    return None
