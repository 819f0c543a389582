"""`envspec diagnose`: finds the root cause in the log of a server, a JIT compiler, an installer or a build.

    scanning      bytes           -> lines worth looking at    one pass, bounded memory
    lines         a line          -> LogLine                   prefixes, colours, progress bars
    forms         a LogLine       -> Sign                      by its form, in any language
    classifying   a LogLine       -> rows of the tables        families, misleading and harmless lines
    reading       LogLines        -> Evidence -> Problem       what each worker is in the middle of, what is tolerated
    candidates    Observed        -> Candidates                what was survived, what was missed later
    judging       Candidates      -> Diagnosis                 cause, others, confidence
    answering     Problem         -> Cause                     the words

What is known is data: families, misleading and harmless lines, phrases, and the one table of scores (`data/README.md`).
It reads; it runs nothing, asks no network and touches no environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from envspec.diagnose.rendering import render_text, to_json
from envspec.diagnose.values import Cause, Diagnosis, Misleading

if TYPE_CHECKING:
    from envspec.diagnose.environment import EnvironmentFacts

__all__ = ["Cause", "Diagnosis", "Misleading", "diagnose", "render_text", "to_json"]


def diagnose(stream: BinaryIO, *, facts: EnvironmentFacts | None = None) -> Diagnosis:
    """Read a log to its end, once, and say what went wrong.

    `stream` yields bytes and need not be seekable. With `facts` the answer speaks of that environment.
    """
    from envspec.diagnose.judging import judge
    from envspec.diagnose.knowledge import knowledge
    from envspec.diagnose.reading import Reading
    from envspec.diagnose.scanning import lines_of

    tables = knowledge()
    reading = Reading(tables)
    expected = 1
    for number, text in lines_of(stream):
        if number != expected:
            reading.leave_gap()
        reading.add(number, text)
        expected = number + 1
    return judge(reading.observed(), tables, facts)
