"""Runs inside an audited environment: loads each named file in a process of its own, with all symbols bound at once.

Reads JSON from standard input: `import` (modules to import first), `globally` and `locally` (files to load first), `files`
(each with those to load before it).
Prints one JSON line a file: [file, "" or what the loader says].
"""

import ctypes
import importlib
import json
import os
import sys


def load(path: str, before: list[str]) -> str:
    """What the loader says of a file, asked in a fork: a library that crashes takes nobody along."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        # Constructors may print, and nobody may run atexit handlers twice.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        said = "loaded"
        try:
            for one in before:
                ctypes.CDLL(one, mode=os.RTLD_NOW | os.RTLD_LOCAL)
            ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            said = str(error)
        os.write(writer, said.encode()[:4096])
        os._exit(0)
    os.close(writer)
    said = os.read(reader, 4096).decode()
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    if said == "loaded":
        return ""
    return said or f"killed by signal {os.WTERMSIG(status)}"


def main() -> None:
    asked = json.load(sys.stdin)
    for name in asked["import"]:
        importlib.import_module(name)
    for path in asked["globally"]:
        ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    for path in asked["locally"]:
        ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    for path, before in asked["files"]:
        print(json.dumps([path, load(path, before)]), flush=True)


if __name__ == "__main__":
    main()
