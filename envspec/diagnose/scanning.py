"""From bytes to the lines worth looking at: one pass, bounded memory, whatever the size of the log.

A log of a gigabyte is nearly all progress markers. Looking at each of its ten million lines would take minutes, so the
middle of a long log is searched for a few byte strings that failures leave (the anchors in `data/phrases.toml`), and only the
neighbourhood of a hit is taken apart. The beginning and the end are always read line by line: there is nothing to
save, and the end tells whether the process lived.

Known limits, all of them in the middle of logs longer than `HEAD` + `TAIL`: a failure that leaves none of the anchors
within `_WINDOW` bytes is not seen; of lines with the same words after the anchor the first `_SAME_SHAPE` are looked
at; after `_HITS` anchors only the first `_HITS_PER_BLOCK` of each kind in a block are; after `_BUDGET` lines the rest
of the middle is passed over.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from typing import BinaryIO

from envspec.diagnose.lines import QUOTE_LIMIT
from envspec.diagnose.phrases import phrase_lists

BLOCK = 1 << 19
HEAD = 3 * BLOCK
TAIL = 2 * BLOCK
_WINDOW = 6_000
_SAME_SHAPE = 12
_SHAPES = 20_000
_HITS_PER_BLOCK = 32
_HITS = 800_000
_BUDGET = 40_000

_DIGITS = b"0123456789"


Finder = Callable[[bytes, int], int]


@cache
def _finders() -> tuple[Finder, ...]:
    """The anchors, each as a search of a block from a place on: where it is, -1 if it is not there."""
    anchors = phrase_lists()["anchors"]
    patterns = (re.compile(text.encode()) for text in anchors.patterns)
    return (*map(_search, patterns), *(_find(text.encode()) for text in anchors.texts))


def _search(pattern: re.Pattern[bytes]) -> Finder:
    def search(block: bytes, start: int) -> int:
        found = pattern.search(block, start)
        return found.start() if found else -1

    return search


def _find(literal: bytes) -> Finder:
    return lambda block, start: block.find(literal, start)


def lines_of(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line worth reading, in the order of the log."""
    searcher = _Searcher()
    held: deque[tuple[int, bytes]] = deque()
    held_bytes = seen = 0
    first = 1
    for block in _blocks(stream):
        held.append((first, block))
        held_bytes += len(block)
        seen += len(block)
        first += block.count(b"\n")
        while held_bytes - len(held[0][1]) >= TAIL or (held and seen <= HEAD):
            number, oldest = held.popleft()
            held_bytes -= len(oldest)
            yield from _every(number, oldest) if seen <= HEAD else searcher.near_anchors(number, oldest)
            if not held:
                break
    for number, block in held:
        yield from _every(number, block)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The log in pieces that end at a line end; the middle of an endless line is left out."""
    rest = b""
    skipping = False
    while data := stream.read(BLOCK):
        if skipping:
            end = data.find(b"\n")
            if end < 0:
                continue
            rest, data, skipping = rest + data[max(0, end - QUOTE_LIMIT) : end], data[end:], False
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut]
            rest = data[cut:]
        else:
            rest += data
        if len(rest) > 4 * BLOCK:
            rest, skipping = _shortened(rest, 2 * BLOCK), True
    if rest:
        yield rest


def _shortened(line: bytes, size: int) -> bytes:
    """A long line as its beginning, what is around its first anchor, and its end."""
    if len(line) <= size:
        return line
    third = size // 3
    inner = line[third:-third]
    hits = [third + at for find in _finders() if (at := find(inner, 0)) >= 0]
    middle = line[max(third, min(hits) - third // 2) :][:third] if hits else b""
    return line[:third] + b" [...] " + middle + b" [...] " + line[-third:]


def _text(line: bytes) -> str:
    return _shortened(line, QUOTE_LIMIT).decode("utf-8", "replace")


def _every(first: int, block: bytes) -> Iterator[tuple[int, str]]:
    lines = block.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, first):
        yield number, _text(line)


class _Searcher:
    """Finds the neighbourhoods of anchors, and remembers what it has seen often."""

    def __init__(self) -> None:
        self._shapes: dict[bytes, int] = {}
        self._left = _BUDGET
        self._tries = _HITS

    def near_anchors(self, first: int, block: bytes) -> Iterator[tuple[int, str]]:
        """The lines around the anchors in a block."""
        windows = self._windows(block)
        at, number = 0, first
        for start, end in windows:
            number += block.count(b"\n", at, start)
            at = start
            for line in block[start:end].split(b"\n"):
                yield number, _text(line)
                number += 1
                self._left -= 1
            at = end + 1

    def _windows(self, block: bytes) -> list[tuple[int, int]]:
        """Merged, line-aligned ranges [start, end) around new hits; `end` is at a line end."""
        windows: list[tuple[int, int]] = []
        for at in self._hits(block):
            start = block.rfind(b"\n", 0, max(0, at - _WINDOW)) + 1
            end = block.find(b"\n", min(len(block), at + _WINDOW))
            end = len(block.rstrip(b"\n")) if end < 0 else end
            if windows and start <= windows[-1][1]:
                windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
            else:
                windows.append((start, end))
        return windows

    def _hits(self, block: bytes) -> list[int]:
        if self._left <= 0:
            return []
        hits: list[int] = []
        for find in _finders():
            at = find(block, 0)
            for count in range(len(block)):
                if at < 0 or (count >= _HITS_PER_BLOCK and self._tries <= 0):
                    break
                self._tries -= 1
                if self._is_new(block, at):
                    hits.append(at)
                end = block.find(b"\n", at)
                at = find(block, end) if end >= 0 else -1
        return sorted(hits)

    def _is_new(self, block: bytes, at: int) -> bool:
        """Whether what stands around the anchor has been seen less than a few times.

        Only what follows the word counts: what comes before it are names and times, which differ endlessly.
        """
        shape = block[max(0, at - 4) : at + 28].translate(None, _DIGITS)
        count = self._shapes.get(shape, 0)
        if count == 0 and len(self._shapes) >= _SHAPES:
            return False
        self._shapes[shape] = count + 1
        return count < _SAME_SHAPE
