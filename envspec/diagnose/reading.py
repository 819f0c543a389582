"""Reading a log: line by line, with a memory of what each worker is in the middle of.

The result is a set of groups: a problem that eight ranks report eight times is one group with the number of its first
and of its last line. Which group is the cause is decided in `judging.py`, when everything has been seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from envspec.diagnose import evidence
from envspec.diagnose.evidence import BASE, Kind, Sign
from envspec.diagnose.knowledge import Family, Knowledge, Noise, RowIndex
from envspec.diagnose.lines import Message, messages

MAX_GROUPS = 3000
MAX_SOURCES = 4096
MAX_DEATHS = 1000
MAX_SHAPES = 20_000
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))

_CUES = (
    "rror",
    "RROR",
    "atal",
    "ATAL",
    "xception",
    "ailed",
    "AILED",
    "ailure",
    "annot",
    "not found",
    "No s",
    "o module",
    "undefined",
    "multiple definition",
    "relocation ",
    "enied",
    "illed",
    "nsupported",
    "nable to",
    "not support",
    "ould not",
    "bort",
    "SIG",
    "ault",
    "Traceback",
    "out of memory",
    "Out of memory",
    "OOM",
    "mismatch",
    "not match",
    "missing",
    "Missing",
    "ld: ",
    "ld.",
    "collect2",
    "sh: ",
    "env: ",
    "╰",
    "├─",
    "\u00d7",
    "what():",
    "terminate called",
    "exit code",
    "exited",
    "died",
    "dead",
    "denied",
    "incompatible",
    "onflict",
    "refused",
    "above exception",
    "possible",
    "Possible",
    "RuntimeE",
    "Timeout",
    "timed out",
    "already",
    "nterrupt",
    "Invalid",
    "invalid",
    "not exist",
    "NotFound",
    "Impossible",
    "Unavailable",
    "OutOf",
    "core dumped",
    "return code",
    "returncode",
    "status",
    "uccess",
    "LLVM",
    "Exit",
    "Empty",
)
_DIAGNOSTIC = re.compile(r":\d{1,7}:(?:\d{1,7}:)? |\(\d{1,7}\)(?: \(col|: )|: [^\W\d_][\w ]{1,25}[:\uff1a]")
_FRAME = re.compile(r'^\s{0,16}(?:\| )?File "')
_CODE = re.compile(
    r"^\s*raise \w|^\s{2,}(?:raise\b|return\b|assert\b|if\b|self\.|[\^~]{2,}|\.\.\.<\d+ lines>|from\b|import\b|with\b|"
    r"\w[\w.]{0,80} = )|^\s*\d{1,6} \|"
)
_COMMAND = re.compile(
    r"^(?:\[\d{1,5}/\d{1,5}\]\s+|\+ |\$ )?(?:[\w+=/.-]{1,200}\s+){0,4}?(?:\S{0,300}/)?(?:nvcc|ccache|sccache|c\+\+|g\+\+|"
    r"gcc|cc|clang(?:\+\+)?|hipcc|x86_64-linux-gnu-g(?:cc|\+\+))(?:-\d+)? [^:]{0,40}-"
)
_PYTHON_WARNING = re.compile(r"(?:^|: )\w{0,40}Warning: ")
_DIGITS = re.compile(r"0x[0-9a-fA-F]+|\d+")
_REPEATED = re.compile(r" \[repeated \d+x across cluster\].*$")
_NINJA = re.compile(r"Command '(\['ninja'.{1,600}?\])'|ninja: Entering directory [`'](?P<dir>[^'`]{1,400})'")
_IGNORED_MODULE = re.compile(
    r"(?i)(?:ignor\w* import error|failed to import|could not import|error (?:when|while) (?:loading|importing))\W+(?:when |"
    r"while |from )?(?:loading |importing )?(?P<module>[\w.]+)"
)
_LOOKUPS = frozenset(
    (
        "KeyError",
        "AttributeError",
        "StopIteration",
        "IndexError",
        "Empty",
        "LookupError",
        "NameError",
        "TypeError",
        "BlockingIOError",
    )
)
_STOPS = frozenset(
    (
        "KeyboardInterrupt",
        "SystemExit",
        "GeneratorExit",
        "CancelledError",
        "StopIteration",
        "StopAsyncIteration",
    )
)
_QUIET = frozenset(("WARN", "WARNING", "INFO", "DEBUG", "TRACE", "NOTICE"))
_WARNING = frozenset(("WARN", "WARNING", "DEBUG", "TRACE"))
_LOUD = frozenset(("ERROR", "CRITICAL", "FATAL", "SEVERE"))


def _indent(body: str) -> int:
    return len(body) - len(body.lstrip())


def _without_digits(literal: str) -> str:
    """The longest piece of a literal without digits, because the shapes of lines have none; all of it if that is short."""
    longest = max(re.split(r"\d+", literal), key=len)
    return longest if len(longest) > 5 else literal


@dataclass
class Group:
    """One problem as the log shows it: its first line, its last, and how telling it is."""

    kind: Kind
    family: Family | None
    parts: dict[str, str]
    line: int
    raw: str
    body: str
    score: int
    tolerated: bool
    last: int
    count: int = 1
    lookup: bool = False
    module: str = ""


@dataclass
class Consequence:
    """A misleading line: the first of its sort, and how often the sort occurs."""

    row: Noise
    line: int
    raw: str
    last: int
    count: int = 1


@dataclass
class _Worker:
    """What one source of lines is in the middle of."""

    in_traceback: bool = False
    frame_indent: int = -1
    opened: int = 0
    link: str = ""
    depth: int = 0
    root: Group | None = None
    tolerated: bool = False
    terminate: bool = False
    failed_import: str = ""


@dataclass
class Reading:
    """Everything that has been seen so far."""

    knowledge: Knowledge
    groups: dict[tuple[object, ...], Group] = field(default_factory=dict)
    consequences: dict[str, Consequence] = field(default_factory=dict)
    deaths: list[int] = field(default_factory=list)
    ready: int = 0
    progress: list[int] = field(default_factory=list)
    last_line: int = 0
    commands: list[str] = field(default_factory=list)
    unfinished: tuple[int, str] | None = None
    _workers: dict[str, _Worker] = field(default_factory=dict)
    _dull: set[str] = field(default_factory=set)
    _tolerating: _Worker | None = None

    def __post_init__(self) -> None:
        literals = [
            literal for row in self.knowledge.families + self.knowledge.noise for literal in row.contains
        ]
        plain = {_without_digits(literal) for literal in literals}
        extra = {literal for literal in plain if not any(cue in literal for cue in _CUES)}
        self._cues = (*_CUES, *sorted(extra))
        self._rows = RowIndex(self.knowledge)
        self._tolerated = re.compile(self.knowledge.marks.tolerated, re.I)
        self._alive = (*self.knowledge.marks.ready, *self.knowledge.marks.progress)

    def add(self, number: int, raw: str) -> None:
        """Take in one physical line."""
        self.last_line = max(self.last_line, number)
        for message in messages(raw):
            body = message.body.rstrip()
            if body:
                self._message(
                    number,
                    raw,
                    message._replace(body=_REPEATED.sub("", body) if "[repeated " in body else body),
                )

    def leave_gap(self) -> None:
        """Lines were passed over: nothing that was begun before them is still open."""
        self._workers.clear()
        self.unfinished = None

    def _message(self, number: int, raw: str, message: Message) -> None:
        worker = self._worker(message.source)
        body = message.body
        if any(mark in body for mark in self._alive):
            self._mark_alive(number, body)
            self._end_tolerance()
            if "rror" not in body and "failed" not in body:
                return
        if message.prefixed and self._tolerating is not None:
            self._end_tolerance()
        if worker.frame_indent >= 0:
            deeper = _indent(body) > worker.frame_indent
            worker.frame_indent = -1
            if deeper or (
                not message.prefixed and _indent(body) == 0 and evidence.exception_parts(body) is None
            ):
                return
        if _FRAME.match(body):
            worker.frame_indent = _indent(body)
            if not worker.in_traceback:
                worker.in_traceback, worker.opened = True, number
                self.unfinished = (number, raw)
            return
        if "Traceback (most recent call last" in body:
            self._open_traceback(number, raw, worker)
            return
        if "above exception" in body:
            if "direct cause" in body:
                worker.link = "cause"
            elif "another exception" in body:
                worker.link = "during"
            return
        if self._is_dull(body):
            if worker.in_traceback and body[:1] not in " \t":
                self._bare_exception(number, raw, message, worker)
            return
        self._classify(number, raw, message, worker)

    def _is_dull(self, body: str) -> bool:
        """Whether nothing in the line could make it evidence; remembered by the line's shape, since most repeat."""
        shape = body[:240].translate(_NO_DIGITS)
        if shape in self._dull:
            return True
        if any(cue in body for cue in self._cues) or _DIAGNOSTIC.search(body):
            return False
        if len(body) <= 240 and len(self._dull) < MAX_SHAPES:
            self._dull.add(shape)
        return True

    def _worker(self, source: str) -> _Worker:
        worker = self._workers.get(source)
        if worker is None:
            if len(self._workers) >= MAX_SOURCES:
                self._workers.clear()
            worker = self._workers[source] = _Worker()
        return worker

    def _mark_alive(self, number: int, body: str) -> None:
        if any(mark in body for mark in self.knowledge.marks.ready):
            self.ready = number
        elif any(mark in body for mark in self.knowledge.marks.progress):
            self.progress.append(number)
            if len(self.progress) > 64:
                del self.progress[:32]

    def _open_traceback(self, number: int, raw: str, worker: _Worker) -> None:
        if not worker.link:
            worker.root = None
        worker.in_traceback, worker.opened = True, number
        self.unfinished = (number, raw)

    def _bare_exception(self, number: int, raw: str, message: Message, worker: _Worker) -> None:
        """The end of a traceback whose exception has a name without Error in it."""
        found = re.match(r"([A-Za-z_][\w.]{1,120})(: |$)", message.body)
        if found:
            self._exception(number, raw, message, worker, found[1], message.body[found.end() :])

    # --- one line -------------------------------------------------------------------------------------------------

    def _classify(self, number: int, raw: str, message: Message, worker: _Worker) -> None:
        body = message.body
        if (found := _NINJA.search(body)) and len(self.commands) < 16:
            self.commands.append(found[1] or f"ninja -v -C {found['dir']}")
        if (
            self._is_harmless(body, worker)
            or _CODE.match(body)
            or (_COMMAND.match(body) and "rror: " not in body)
        ):
            return
        if "terminate called after" in body:
            worker.terminate = True
        exception = evidence.exception_parts(body)
        noise = self._noise(body)
        if noise is not None:
            row, payload = noise
            self._consequence(row, number, raw, message, worker)
            if exception:
                worker.in_traceback = False
                if self.unfinished and self.unfinished[0] >= worker.opened:
                    self.unfinished = None
            if payload:
                self._payload_sign(number, raw, message, worker, payload)
            return
        sign = self._structural(body, worker)
        if sign is None and exception:
            self._exception(number, raw, message, worker, exception[0], exception[1])
            return
        family, parts = self._family(body)
        if sign is None and family is not None and family.alone:
            sign = Sign(family.kind, body)
        if sign is None:
            sign = evidence.worded_sign(body)
        if (
            sign is None
            and message.level in _LOUD
            and body[:1] not in " \t"
            and not worker.in_traceback
            and message.prefixed
        ):
            sign = Sign(Kind.MESSAGE, body)
        if sign is None:
            self._note_tolerance(message, worker)
            return
        if exception:
            self._close_traceback(worker)
        if body.lstrip().startswith("Caused by: "):
            worker.depth += 1  # the deepest link of such a chain is the cause
            sign = sign._replace(weight=sign.weight + min(worker.depth, 12))
        else:
            worker.depth = 0
        self._record(number, raw, message, worker, sign, family, parts, chained=exception is not None)

    def _structural(self, body: str, worker: _Worker) -> Sign | None:
        if worker.terminate and "what():" in body:
            worker.terminate = False
            return Sign(Kind.PYTHON, body.split("what():", 1)[1].strip())
        return (
            evidence.resolver_sign(body)
            or evidence.compiler_sign(body)
            or evidence.linker_sign(body)
            or evidence.loader_sign(body)
            or evidence.shell_sign(body)
            or evidence.crash_sign(body)
        )

    def _is_harmless(self, body: str, worker: _Worker) -> bool:
        if self._rows.match("harmless", body) is None:
            return False
        self._tolerate(worker)
        return True

    def _tolerate(self, worker: _Worker) -> None:
        self._end_tolerance()
        worker.tolerated = True
        self._tolerating = worker

    def _end_tolerance(self) -> None:
        if self._tolerating is not None:
            self._tolerating.tolerated = False
            self._tolerating = None

    def _note_tolerance(self, message: Message, worker: _Worker) -> None:
        if message.prefixed and (message.level in _QUIET or self._tolerated.search(message.body)):
            self._tolerate(worker)

    def _noise(self, body: str) -> tuple[Noise, str] | None:
        """The row of misleading lines that applies, and the message that is quoted in the line."""
        found = self._rows.match("noise", body)
        return (found[0], found[1].get("payload", "").strip()) if found else None

    def _family(self, body: str) -> tuple[Family | None, dict[str, str]]:
        found = self._rows.match("families", body)
        return found if found else (None, {})

    def _consequence(self, row: Noise, number: int, raw: str, message: Message, worker: _Worker) -> None:
        if row.failure and (worker.tolerated or message.level in _WARNING):
            return
        if row.failure and len(self.deaths) < MAX_DEATHS:
            self.deaths.append(number)
        known = self.consequences.get(row.id)
        if known is None:
            self.consequences[row.id] = Consequence(row, number, raw, number)
        else:
            known.last, known.count = number, known.count + 1

    def _payload_sign(self, number: int, raw: str, message: Message, worker: _Worker, payload: str) -> None:
        """A wrapper that quotes what it wraps: the quotation counts, a little less than the original."""
        if self._noise(payload) is not None:
            return
        inner = message._replace(body=payload)
        sign = self._structural(payload, worker)
        family, parts = self._family(payload)
        if sign is None and family is not None and family.alone:
            sign = Sign(family.kind, payload)
        if sign is None:
            sign = Sign(Kind.PYTHON, payload, weight=-6)
        self._record(
            number, raw, inner, worker, sign._replace(weight=sign.weight - 3), family, parts, chained=True
        )

    # --- exceptions -----------------------------------------------------------------------------------------------

    def _close_traceback(self, worker: _Worker) -> None:
        worker.in_traceback = False
        self.unfinished = None

    def _exception(
        self, number: int, raw: str, message: Message, worker: _Worker, name: str, text: str
    ) -> None:
        inside = worker.in_traceback
        self._close_traceback(worker)
        last = name.rsplit(".", 1)[-1]
        if last in _STOPS or last.endswith("Warning"):
            return
        family, parts = self._family(message.body)
        kind = family.kind if family else Kind.PYTHON
        weight = 0
        if not text.strip():
            weight = -22  # a name without a message: what follows says more
        if not inside and family is None:
            weight -= 4
        self._record(
            number,
            raw,
            message,
            worker,
            Sign(kind, text, weight),
            family,
            parts,
            chained=True,
            lookup=last in _LOOKUPS,
        )

    def _is_tolerated(self, message: Message, worker: _Worker, chained: bool) -> bool:
        """Whether the program itself said that it goes on: by the level of the message, or in words."""
        if message.level in _WARNING or worker.tolerated or _PYTHON_WARNING.search(message.body[:300]):
            return True
        if chained or message.level in _LOUD or (not message.prefixed and evidence.worded_sign(message.body)):
            return False
        return message.level in _QUIET or bool(self._tolerated.search(message.body))

    # --- groups ---------------------------------------------------------------------------------------------------

    def _record(
        self,
        number: int,
        raw: str,
        message: Message,
        worker: _Worker,
        sign: Sign,
        family: Family | None,
        parts: dict[str, str],
        *,
        chained: bool,
        lookup: bool = False,
    ) -> None:
        kind = family.kind if family and sign.kind in (Kind.PYTHON, Kind.MESSAGE, Kind.CRASH) else sign.kind
        score = BASE[kind] + sign.weight + (8 + family.weight if family else 0)
        tool = kind in (Kind.COMPILER, Kind.LINKER) and message.level not in _WARNING
        tolerated = not tool and self._is_tolerated(message, worker, chained)
        found = _IGNORED_MODULE.search(message.body)
        if tolerated:
            score -= 40
            if message.prefixed:
                self._tolerate(worker)
        if chained and worker.link and worker.root is not None:
            demoted = worker.link == "during" and worker.root.score < 70 and worker.root.lookup
            worker.link = ""
            if not demoted:
                score -= 30
            else:
                worker.root.score -= 30
        else:
            worker.link = ""
        key = (kind, family.id if family else "", tolerated, _DIGITS.sub("#", message.body.strip())[:200])
        known = self.groups.get(key)
        if known is not None:
            known.last, known.count = number, known.count + 1
            known.score = max(known.score, score)
            group = known
        else:
            if len(self.groups) >= MAX_GROUPS:
                return
            group = Group(kind, family, parts, number, raw, message.body, score, tolerated, number)
            group.lookup, group.module = lookup, found["module"] if found else ""
            self.groups[key] = group
        if chained and worker.root is None:
            worker.root = group
