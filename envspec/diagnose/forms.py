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

from envspec.diagnose.evidence import Sign
from envspec.diagnose.kinds import Kind
from envspec.diagnose.phrases import kind_of_word, pattern, texts
from envspec.diagnose.scoring import Step, points

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
_SHELL = re.compile(
    r"^(?:\S{0,60}/)?(?:sh|bash|dash|zsh|ash|env|nohup|sudo|exec|time|timeout|xargs|[\w./-]{1,120}\.sh): (?:line "
    r")?(?:\d{1,6}: )?(?P<rest>.{1,300})"
)
_NOT_STARTED = re.compile(
    r"^/(?:[\w.+-]{1,80}/){0,20}[\w.+-]{1,80}: (?:No such file or directory|(?:command )?not found|Permission denied)$"
)
_EXCEPTION = re.compile(
    r"^(?P<lead>[ \t]{0,12}(?:[-*•>] |\d{1,4}: |\+ Exception Group |\| "
    r")?)(?P<name>(?:[A-Za-z_]\w{0,80}\.){0,9}[A-Za-z_]\w{0,80})(?P<sep>: ?|$)(?P<rest>.*)"
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
_MLIR = re.compile(
    r"(?:loc\(|<unknown>:\d|[\w./-]{1,200}\.py:\d{1,7}:\d{1,7}): error: |^error: (?:'[\w.]{1,60}' op|Failures have been "
    r"detected while processing an MLIR)|^LLVM ERROR: |^JIT session error: "
)
_RUST = re.compile(r"^error(?:\[E\d{4}\])?: ")

_PLACE = re.compile(r":\d{1,7}:(?:\d{1,7}:)? |\(\d{1,7}\)(?: \(col|: )|: [^\W\d_][\w ]{1,25}[:\uff1a]")
_CODE = re.compile(
    r"^\s*raise \w|^\s{2,}(?:raise\b|return\b|assert\b|if\b|self\.|[\^~]{2,}|\.\.\.<\d+ lines>|from\b|import\b|with\b|"
    r"\w[\w.]{0,80} = )|^\s*\d{1,6} \|"
)
_COMMAND = re.compile(
    r"^(?:\[\d{1,5}/\d{1,5}\]\s+|\+ |\$ )?(?:[\w+=/.-]{1,200}\s+){0,4}?(?:\S{0,300}/)?(?:nvcc|ccache|sccache|c\+\+|g\+\+|"
    r"gcc|cc|clang(?:\+\+)?|hipcc|x86_64-linux-gnu-g(?:cc|\+\+))(?:-\d+)? [^:]{0,40}-"
)
_SOURCE_LIKE = re.compile(
    r"\.(?:c|cc|cpp|cxx|c\+\+|cu|cuh|h|hh|hpp|hxx|inl|inc|ptx|ipp|tcc|s|S|ii|i|f90|F|m|mm|pyx|ld|lds|rs|go|cl|py|tpp|def|td|"
    r"ll|mlir|txt|cppm|ixx|cl|hip|gpu|stub\.c)$|^/|^<|^\.\.?/"
)


def sign_by_form(body: str) -> Sign | None:
    """Return what the line is by its form, or None if it has none of a tool's, a loader's, a shell's or a crash."""
    return (
        _resolver_sign(body)
        or _compiler_sign(body)
        or _linker_sign(body)
        or _loader_sign(body)
        or _shell_sign(body)
        or _crash_sign(body)
    )


def exception_parts(body: str) -> tuple[str, str] | None:
    """Return name and message of a line that ends a Python traceback, or is an entry of a list of exceptions."""
    found = _EXCEPTION.match(body)
    if not found:
        return None
    name = found["name"]
    last = name.rsplit(".", 1)[-1]
    if not (last[:1].isupper() or "." in name or name.endswith("error")):
        return None
    if not last.endswith(texts("exception-names")) and not pattern("exception-names").search(last):
        return None
    if found["sep"] == "" and (found["lead"].strip() or (" " in found["rest"])):
        return None
    return name, found["rest"]


def worded_sign(body: str) -> Sign | None:
    """Return the sign of a line that begins with a word for error, printed by a tool of which nothing else is known."""
    if _ASSERTION.search(body):
        return Sign(Kind.MESSAGE, points(Step.ASSERTION))
    if _CMAKE.match(body):
        return Sign(Kind.TOOLCHAIN, points(Step.CMAKE_FRAME))
    if _UV_HEADLINE.match(body):
        return Sign(Kind.INSTALLER, points(Step.UV_HEADLINE))
    if _RUST.match(body):
        return Sign(Kind.MESSAGE, points(Step.RUST_ERROR))
    if _WORDED.match(body):
        return Sign(Kind.MESSAGE, points(Step.WORDED_ERROR))
    if (found := _GENERIC_TOOL.match(body)) and pattern("tool-failed").search(found["rest"]):
        return Sign(Kind.MESSAGE, points(Step.TOOL_FAILED))
    return None


def names_a_place(body: str) -> bool:
    """Return whether the line has a place in a file, or a word where compilers write "error"."""
    return _PLACE.search(body) is not None


def is_program_text(body: str) -> bool:
    """Return whether the line is source code that a traceback quotes, or a command of a build that is no error."""
    return bool(_CODE.match(body) or (_COMMAND.match(body) and "rror: " not in body))


def _compiler_sign(body: str) -> Sign | None:
    """A diagnostic of a compiler, an assembler or a compiler driver."""
    if "): " in body and (found := _EDG.search(body)):
        return Sign(Kind.COMPILER) if "error" in found["word"] else None
    if _CUDA_TOOL.search(body) or _BARE_CUDA_TOOL.search(body):
        return Sign(Kind.COMPILER)
    if found := _GCC.search(body):
        word = kind_of_word(found["word"])
        source = bool(_SOURCE_LIKE.search(found["file"]))
        if word == "error" and (source or found["column"]):
            return Sign(Kind.COMPILER)
        no_text = not found["file"].endswith((".py", ".txt"))
        if not word and source and found["column"] and no_text and len(found["word"]) < 24:
            return Sign(Kind.COMPILER, points(Step.UNKNOWN_WORD))
        if word:
            return None
    if (found := _COMPILER_DRIVER.search(body)) and kind_of_word(found["word"]) == "error":
        return Sign(Kind.COMPILER)
    if ": fatal error: " in body or body.startswith("fatal error: ") or "LLVM ERROR" in body:
        return Sign(Kind.COMPILER)
    if (" error " in body and _MSVC.search(body)) or ("rror: " in body and _MLIR.search(body)):
        return Sign(Kind.COMPILER)
    return None


def _linker_sign(body: str) -> Sign | None:
    """A complaint of a linker. That it "returned 1 exit status" is a consequence and not one."""
    if _LINKER_IN_FILE.search(body):
        return Sign(Kind.LINKER)
    found = _LINKER.search(body)
    if not found or pattern("linker-remark").search(found["rest"]):
        return None
    if found["tool"].endswith("collect2") and _LD_SUMMARY.search(found["rest"]):
        return None
    return None if found["tool"].endswith("ld.so") else Sign(Kind.LINKER)


def _loader_sign(body: str) -> Sign | None:
    return Sign(Kind.LOADER) if pattern("loader").search(body) else None


def _shell_sign(body: str) -> Sign | None:
    """A shell, or something that starts programs, could not start one."""
    found = _SHELL.search(body)
    if _NOT_STARTED.match(body) or (found and pattern("shell").search(found["rest"])):
        return Sign(Kind.SHELL)
    return None


def _crash_sign(body: str) -> Sign | None:
    return Sign(Kind.CRASH) if pattern("crash").search(body) else None


def _resolver_sign(body: str) -> Sign | None:
    """uv's chain of reasons: the headline says that it failed, the first arrow says why."""
    found = _UV_REASON.match(body)
    if not found or found["rest"].startswith(("See above", "[", "See ")):
        return None
    resolving = "depend" in found["rest"] or "require" in found["rest"]
    return Sign(Kind.RESOLVER if resolving else Kind.INSTALLER)
