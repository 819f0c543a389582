"""For probes of the bare toolkit: compile and link a shared library, and call it if there is a GPU. No torch.

The library's `int probe_run(char *words, int size)` returns 0 if everything it ran gave what it should.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

DOTTED = os.environ["TVM_FFI_CUDA_ARCH_LIST"]
NUMBER = DOTTED.replace(".", "")
CUDA_HOME = os.environ["CUDA_HOME"]

# Runs a launch plainly, then captured in a graph and replayed; `fill(n)` sets the inputs for round n, `differs(n)` compares.
HARNESS = r"""
#include <cstdio>
#include <cuda_runtime.h>
#define TRY(call)                                                                          \
    do {                                                                                   \
        cudaError_t failed = (call);                                                       \
        if (failed != cudaSuccess) {                                                       \
            std::snprintf(words, size, "%s: %s", #call, cudaGetErrorString(failed));       \
            return 1;                                                                      \
        }                                                                                  \
    } while (0)

template <class Fill, class Launch, class Differs>
int plain_and_captured(Fill fill, Launch launch, Differs differs, char *words, int size) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replayed;
    TRY(cudaStreamCreate(&stream));
    fill(1);
    launch(stream);
    TRY(cudaGetLastError());
    TRY(cudaStreamSynchronize(stream));
    if (differs(1)) { std::snprintf(words, size, "the kernel gives a wrong result"); return 2; }
    TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch(stream);
    TRY(cudaStreamEndCapture(stream, &graph));
    TRY(cudaGraphInstantiate(&replayed, graph, 0));
    fill(2);
    TRY(cudaGraphLaunch(replayed, stream));
    TRY(cudaStreamSynchronize(stream));
    if (differs(2)) { std::snprintf(words, size, "the captured kernel gives a wrong result when replayed"); return 3; }
    cudaGraphExecDestroy(replayed);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return 0;
}
"""


def tool(*command):
    """Run a compiler; end this probe with its words and its code if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        shown = " ".join(command)
        print(f"{command[0]} failed ({done.returncode}): {shown}", file=sys.stderr)
        sys.exit(1)


def nvcc(*arguments):
    """The environment's nvcc, for the environment's GPU."""
    gencode = f"arch=compute_{NUMBER},code=sm_{NUMBER}"
    tool(f"{CUDA_HOME}/bin/nvcc", "-gencode", gencode, *arguments)


def probe(source, *libraries):
    """Compile `source`, link it as flashinfer does (host compiler, CUDA_HOME alone), and run it if that is possible."""
    with tempfile.TemporaryDirectory() as work:
        at = f"{work}/probe"
        Path(f"{at}.cu").write_text(source)
        nvcc("-c", "-std=c++17", "-Xcompiler", "-fPIC", f"{at}.cu", "-o", f"{at}.o")
        cxx = os.environ.get("CXX", "c++").split()
        where = [f"-L{CUDA_HOME}/lib64", f"-L{CUDA_HOME}/lib64/stubs"]
        tool(*cxx, "-shared", f"{at}.o", "-o", f"{at}.so", *where, *(f"-l{name}" for name in libraries))
        print(f"probe: compiled and linked for sm_{NUMBER}")
        if usable():
            run(f"{at}.so")


def driver():
    """The driver's library, initialised; None without driver or GPU."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    count = ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return None
    return cuda


def usable():
    """True if there is a GPU of the environment's architecture."""
    cuda = driver()
    if cuda is None:
        return False
    major, minor, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    return fits(major.value, minor.value)


def fits(major, minor):
    """True if code for the environment's architecture runs on this GPU; says so if not."""
    wanted = DOTTED.rstrip("af").split(".")
    same = (int(wanted[0]), int(wanted[1])) == (major, minor)
    upwards = not DOTTED.endswith("a") and int(wanted[0]) == major and int(wanted[1]) <= minor
    if not same and not upwards:
        print(f"probe: not run: the GPU is of architecture {major}.{minor}")
    return same or upwards


def run(library):
    """Call the library's probe_run."""
    words = ctypes.create_string_buffer(512)
    if ctypes.CDLL(library).probe_run(words, len(words)) != 0:
        sys.exit(f"RuntimeError: {words.value.decode(errors='replace')}")
    print("probe: ran, captured and replayed")
