"""`envspec diagnose`: finds the root cause in the log of a server, a JIT compiler, an installer or a build.

    scanning    bytes      -> lines worth looking at    one pass, bounded memory
    lines       a line     -> messages                  prefixes, colours, progress bars
    evidence    a message  -> a sign                    by structure, in any language
    knowledge   tables     -> families, misleading and harmless lines
    reading     messages   -> groups                    what each worker is in the middle of
    judging     groups     -> Diagnosis                 cause, consequence, confidence

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

    reading = Reading(knowledge())
    expected = 1
    for number, text in lines_of(stream):
        if number != expected:
            reading.leave_gap()
        reading.add(number, text)
        expected = number + 1
    return judge(reading, facts)
