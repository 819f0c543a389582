"""For probes with torch: run what was compiled, plainly and from a CUDA graph, and compare, if there is a GPU for it."""

import _cuda
import torch


def usable():
    """True if torch has a GPU of the environment's architecture."""
    return torch.cuda.is_available() and _cuda.fits(*torch.cuda.get_device_capability())


def plain_and_captured(fill, launch, result, expected, tolerance):
    """Compare `result()` with `expected()` after `launch()`, then after the replay of a graph that captured it.

    `fill()` writes new random inputs into the same memory, so that a replay that does nothing cannot pass.
    """
    fill()
    launch()
    torch.cuda.synchronize()
    worst = _compare(result(), expected(), tolerance, "plain")
    # Libraries allocate when they are first used on a stream, which a capture does not allow.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        launch()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    fill()
    graph.replay()
    torch.cuda.synchronize()
    worst = max(worst, _compare(result(), expected(), tolerance, "replayed"))
    print(f"probe: ran, captured and replayed, largest error {worst:.1e}")


def _compare(found, wanted, tolerance, how):
    worst = (found.float() - wanted.float()).abs().max().item()
    if not worst <= tolerance:  # also if it is not a number
        raise AssertionError(f"{how}: the largest error is {worst}, {tolerance} is allowed")
    return worst
