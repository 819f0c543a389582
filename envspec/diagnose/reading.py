"""Reading a log line by line, with a memory of what each worker is in the middle of.

The result is what was observed; which of it is the cause is decided in `judging`, when everything has been seen.
"""

from __future__ import annotations

import re

import msgspec

from envspec.diagnose.classifying import Classifier, family_sign
from envspec.diagnose.evidence import Evidence, Sign
from envspec.diagnose.forms import exception_parts, is_program_text, sign_by_form, worded_sign
from envspec.diagnose.kinds import Kind
from envspec.diagnose.knowledge import Knowledge, MisleadingLine
from envspec.diagnose.lines import LogLine, log_lines
from envspec.diagnose.phrases import texts
from envspec.diagnose.problems import Misled, Problem, Problems
from envspec.diagnose.scoring import Step, points, score
from envspec.diagnose.tolerance import Tolerance, is_loud, is_warning
from envspec.diagnose.worker import Worker

MAX_SOURCES = 4096
MAX_EXITS = 1000
MAX_PROGRESS = 64
_NINJA = re.compile(r"Command '(\['ninja'.{1,600}?\])'|ninja: Entering directory [`'](?P<dir>[^'`]{1,400})'")
_NAMED = re.compile(r"([A-Za-z_][\w.]{1,120})(: |$)")


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """Says what was seen in a log, from its first line to its last."""

    problems: tuple[Problem, ...]
    misled: tuple[Misled, ...]
    exits: tuple[int, ...]
    """The lines that prove that something failed: mostly process exits. In the order of the log, the first MAX_EXITS."""
    ready: int
    """The last line that says that a process has started, 0 if none does."""
    progress: tuple[int, ...]
    """The last lines with a marker of work."""
    unfinished: LogLine | None
    """The beginning of a traceback of which the end was not seen."""
    build_command: str
    """How the log runs ninja, empty if it does not show it."""


class Reading:
    """Takes in the lines of a log, one after the other."""

    def __init__(self, tables: Knowledge) -> None:
        self._classifier = Classifier(tables)
        self._tolerance = Tolerance()
        self._workers: dict[str, Worker] = {}
        self._problems = Problems()
        self._misled: dict[str, Misled] = {}
        self._exits: list[int] = []
        self._ready = 0
        self._progress: list[int] = []
        self._unfinished: LogLine | None = None
        self._build_command = ""

    def add(self, number: int, raw: str) -> None:
        """Take in one physical line."""
        for line in log_lines(number, raw):
            self._take(line, self._worker(line.source))

    def leave_gap(self) -> None:
        """Forget what was begun: lines were passed over, and it may have ended in them."""
        self._workers.clear()
        self._unfinished = None

    def observed(self) -> Observed:
        """Return what was seen so far."""
        return Observed(
            problems=tuple(self._problems),
            misled=tuple(self._misled.values()),
            exits=tuple(self._exits),
            ready=self._ready,
            progress=tuple(self._progress),
            unfinished=self._unfinished,
            build_command=self._build_command,
        )

    def _worker(self, source: str) -> Worker:
        worker = self._workers.get(source)
        if worker is None:
            if len(self._workers) >= MAX_SOURCES:
                self._workers.clear()
            worker = self._workers[source] = Worker()
        return worker

    # --- what surrounds evidence: progress, tracebacks -------------------------------------------------------------

    def _take(self, line: LogLine, worker: Worker) -> None:
        body = line.body
        if self._classifier.shows_progress(body):
            self._note_progress(line)
            if "rror" not in body and "failed" not in body:
                return
        if line.prefixed:
            self._tolerance.end()
        if worker.quotes_source(line):
            return
        if worker.enters_frame(line):
            if not worker.in_traceback:
                worker.open_traceback(line.number)
                self._unfinished = line
        elif "Traceback (most recent call last" in body:
            worker.begin_traceback(line.number)
            self._unfinished = line
        elif "above exception" in body:
            worker.join_exceptions(body)
        elif not self._classifier.is_passed_over(body):
            self._classify(line, worker)
        elif worker.in_traceback and not line.is_indented and (found := _NAMED.match(body)):
            # The end of a traceback whose exception has a name without Error in it.
            self._take_exception(line, worker, found[1], body[found.end() :])

    def _note_progress(self, line: LogLine) -> None:
        self._tolerance.end()
        if self._classifier.shows_readiness(line.body):
            self._ready = line.number
            return
        self._progress.append(line.number)
        if len(self._progress) > MAX_PROGRESS:
            del self._progress[: MAX_PROGRESS // 2]

    def _close_traceback(self, worker: Worker) -> None:
        worker.in_traceback = False
        self._unfinished = None

    # --- one line that may be evidence -------------------------------------------------------------------------------

    def _classify(self, line: LogLine, worker: Worker) -> None:
        body = line.body
        self._note_build_command(body)
        if self._classifier.is_harmless(body):
            self._tolerance.begin(worker)
            return
        if is_program_text(body):
            return
        if "terminate called after" in body:
            worker.terminating = True
        exception = exception_parts(body)
        misleading = self._classifier.misleading(body)
        if misleading is not None:
            self._take_misleading(line, worker, *misleading, is_exception=exception is not None)
            return
        sign = self._sign_by_form(body, worker)
        if sign is None and exception is not None:
            self._take_exception(line, worker, *exception)
            return
        family, parts = self._classifier.family(body)
        sign = sign or family_sign(family) or worded_sign(body) or _loud_sign(line, worker)
        if sign is None:
            if self._tolerance.is_announced(line):
                self._tolerance.begin(worker)
            return
        if exception is not None:
            self._close_traceback(worker)
        sign = worker.count_causes(body, sign)
        chained = exception is not None
        self._record(Evidence(line=line, sign=sign, family=family, parts=parts, chained=chained), worker)

    def _note_build_command(self, body: str) -> None:
        if not self._build_command and (found := _NINJA.search(body)):
            self._build_command = found[1] or f"ninja -v -C {found['dir']}"

    def _sign_by_form(self, body: str, worker: Worker) -> Sign | None:
        if worker.terminating and "what():" in body:
            worker.terminating = False
            return Sign(Kind.PYTHON)
        return sign_by_form(body)

    def _take_exception(self, line: LogLine, worker: Worker, name: str, text: str) -> None:
        inside = worker.in_traceback
        self._close_traceback(worker)
        last = name.rsplit(".", 1)[-1]
        if last in texts("stops") or last.endswith("Warning"):
            return
        family, parts = self._classifier.family(line.body)
        more = 0 if text.strip() else points(Step.NO_MESSAGE)
        if not inside and family is None:
            more += points(Step.OUTSIDE_TRACEBACK)
        evidence = Evidence(
            line=line,
            sign=Sign(family.kind if family else Kind.PYTHON, more),
            family=family,
            parts=parts,
            chained=True,
            lookup=last in texts("lookups"),
        )
        self._record(evidence, worker)

    def _take_misleading(
        self, line: LogLine, worker: Worker, row: MisleadingLine, quoted: str, *, is_exception: bool
    ) -> None:
        self._note_misleading(line, worker, row)
        if is_exception:
            worker.in_traceback = False
            if self._unfinished is not None and self._unfinished.number >= worker.opened:
                self._unfinished = None
        if quoted and self._classifier.misleading(quoted) is None:
            self._take_quoted(msgspec.structs.replace(line, body=quoted), worker)

    def _note_misleading(self, line: LogLine, worker: Worker, row: MisleadingLine) -> None:
        if row.failure:
            if self._tolerance.covers(worker) or is_warning(line):
                return
            if len(self._exits) < MAX_EXITS:
                self._exits.append(line.number)
        known = self._misled.get(row.id)
        if known is None:
            self._misled[row.id] = Misled(row, line.number, line.raw, line.number)
        else:
            known.last, known.count = line.number, known.count + 1

    def _take_quoted(self, line: LogLine, worker: Worker) -> None:
        """A message that another one quotes counts, but a little less than the original."""
        sign = self._sign_by_form(line.body, worker)
        family, parts = self._classifier.family(line.body)
        sign = sign or family_sign(family) or Sign(Kind.PYTHON, points(Step.QUOTED_IN_FREE_WORDS))
        sign = sign.with_more(points(Step.QUOTED))
        self._record(Evidence(line=line, sign=sign, family=family, parts=parts, chained=True), worker)

    def _record(self, evidence: Evidence, worker: Worker) -> None:
        line = evidence.line
        tool = evidence.kind in (Kind.COMPILER, Kind.LINKER) and not is_warning(line)
        tolerated = not tool and self._tolerance.allows(line, worker, chained=evidence.chained)
        if tolerated and line.prefixed:
            self._tolerance.begin(worker)
        total = score(evidence, tolerated=tolerated) + worker.place_in_chain(evidence)
        problem = self._problems.add(evidence, total, tolerated=tolerated)
        if evidence.chained and worker.root is None:
            worker.root = problem


def _loud_sign(line: LogLine, worker: Worker) -> Sign | None:
    """A record of the level of errors, of which nothing else is known."""
    if is_loud(line) and line.prefixed and not line.is_indented and not worker.in_traceback:
        return Sign(Kind.MESSAGE)
    return None
