"""Few cases in which every value of every dimension meets every value of every other one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

_Pair = tuple[int, int, int, int]


def pairwise(*dimensions: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Cases, one value of each dimension, that hold all pairs of values of any two dimensions; always the same ones.

    Greedy: each case begins with a pair that is still missing and takes for each other dimension the value that adds most.
    """
    missing: dict[_Pair, None] = {
        (a, i, b, j): None
        for (a, one), (b, other) in itertools.combinations(enumerate(dimensions), 2)
        for i, j in itertools.product(range(len(one)), range(len(other)))
    }
    cases = []
    while missing:
        a, i, b, j = next(iter(missing))
        chosen = {a: i, b: j}
        for at, values in enumerate(dimensions):
            if at not in chosen:
                chosen[at] = max(
                    range(len(values)), key=lambda value: len(_new(missing, {**chosen, at: value}))
                )
        for pair in _new(missing, chosen):
            del missing[pair]
        cases.append(tuple(values[chosen[at]] for at, values in enumerate(dimensions)))
    return cases


def _new(missing: dict[_Pair, None], chosen: dict[int, int]) -> list[_Pair]:
    pairs = itertools.combinations(sorted(chosen.items()), 2)
    return [(*one, *other) for one, other in pairs if (*one, *other) in missing]
