"""Broken on purpose: small situations in which real compilers, linkers, loaders, shells, Python and uv fail.

Each is a shell script that runs in an empty directory with the C locale; what it prints is the log. `expected` is a
part of the line that has to be named. Only tools are used that come with a C++ compiler or with envspec itself.
"""

from __future__ import annotations

from typing import NamedTuple


class Broken(NamedTuple):
    """One situation: a name, the script, and a part of the line that is the cause."""

    name: str
    script: str
    expected: str


_EXTENSION = (
    "printf 'extern void {symbol}(void); void* PyInit_ext(void) {{ {symbol}(); return 0; }}' > ext.c\n"
)
_SHARED = "gcc -shared -fPIC -o ext.so ext.c\n"
_WHEELS = """\
"$PYTHON" - <<'EOF'
import zipfile
for name, version, needs in [("aa", "1.0", "cc==1.0"), ("bb", "1.0", "cc==2.0"), ("cc", "1.0", ""), ("cc", "2.0", "")]:
    with zipfile.ZipFile(f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        info = f"{name}-{version}.dist-info"
        requires = f"Requires-Dist: {needs}\\n" if needs else ""
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n{requires}")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
EOF
"""
_UV = '"$UV" pip compile --quiet --offline --no-index --find-links . --python "$PYTHON" -\n'

BROKEN = (
    Broken(
        "cccl-header",
        "echo '#include <nv/target>' > a.cpp; g++ -c a.cpp",
        "fatal error: nv/target: No such file",
    ),
    Broken(
        "python-header",
        "printf '#include <Python.h>\\nint x;\\n' > main.c; gcc -nostdinc -c main.c",
        "Python.h",
    ),
    Broken(
        "undeclared",
        "echo 'int main() { return frobnicate(3); }' > a.cpp; g++ -c a.cpp",
        "error: 'frobnicate'",
    ),
    Broken(
        "c-undeclared", "echo 'int main() { return frob; }' > a.c; gcc -c a.c", "error: 'frob' undeclared"
    ),
    Broken(
        "static-assert",
        "echo 'static_assert(sizeof(int) == 3, \"not three\");' > a.cpp; g++ -c a.cpp",
        "static assertion failed",
    ),
    Broken("hash-error", "echo '#error \"wrong release\"' > a.cpp; g++ -c a.cpp", '#error "wrong release"'),
    Broken(
        "template-after-warnings",
        "printf '#warning \"this is only a warning\"\\ntemplate <class T> struct S { typename T::type x; };\\nS<int> s;\\n' "
        "> a.cpp\n"
        "g++ -Wall -c a.cpp",
        "error: 'int' is not a class",
    ),
    Broken("unknown-option", "echo 'int x;' > a.cpp; g++ --frobnicate -c a.cpp", "--frobnicate"),
    Broken("unknown-standard", "echo 'int x;' > a.cpp; g++ -std=c++99 -c a.cpp", "-std=c++99"),
    Broken("no-input", "g++ -c nothere.cpp", "nothere.cpp: No such file or directory"),
    Broken(
        "link-cudart", "echo 'int main() {}' > a.cpp; g++ a.cpp -L. -lcudart -o a", "cannot find -lcudart"
    ),
    Broken("link-cuda-stub", "echo 'int main() {}' > a.cpp; g++ a.cpp -L. -lcuda -o a", "cannot find -lcuda"),
    Broken(
        "undefined-reference",
        "echo 'void frob(); int main() { frob(); }' > a.cpp; g++ a.cpp -o a",
        "undefined reference to `frob()'",
    ),
    Broken(
        "not-pic",
        "echo 'int x; int* f() { return &x; }' > a.c; gcc -fno-pic -mcmodel=large -c a.c; gcc -fno-pic -c a.c; gcc -shared "
        "a.o -o a.so",
        "recompile with -fPIC",
    ),
    Broken(
        "twice-defined",
        "echo 'int f() { return 1; }' | tee a.c > b.c; echo 'int main() {}' > m.c; gcc a.c b.c m.c",
        "multiple definition of",
    ),
    Broken("garbage-object", "head -c 300 /dev/zero > a.o; echo 'int main() {}' > m.c; gcc m.c a.o", "a.o"),
    Broken("no-tool", "./toolkit/bin/nvcc -c a.cu", "toolkit/bin/nvcc: not found"),
    Broken("not-executable", "echo '#!/bin/sh' > tool; chmod 644 tool; ./tool", "tool: Permission denied"),
    Broken(
        "abi-symbol",
        _EXTENSION.format(symbol="_ZNK3c106SymInt6sym_neERKS0_") + _SHARED + '"$PYTHON" -c "import ext"',
        "undefined symbol: _ZNK3c106SymInt6sym_neERKS0_",
    ),
    Broken(
        "driver-symbol",
        _EXTENSION.format(symbol="cuGreenCtxStreamCreate") + _SHARED + '"$PYTHON" -c "import ext"',
        "undefined symbol: cuGreenCtxStreamCreate",
    ),
    Broken(
        "library-missing",
        '"$PYTHON" -c "import ctypes; ctypes.CDLL(\'libnvrtc.so.13\')"',
        "OSError: libnvrtc.so.13: cannot open",
    ),
    Broken(
        "program-library-missing",
        "echo 'int f() { return 1; }' > f.c; gcc -shared -fPIC -o libf.so f.c; echo 'int f(); int main() { return f(); }' > m.c\n"
        "gcc m.c -L. -lf -o m; ./m",
        "error while loading shared libraries: libf.so",
    ),
    Broken(
        "program-symbol-missing",
        "echo 'int f() { return 1; }' > f.c; gcc -shared -fPIC -o libf.so f.c; echo 'int f(); int main() { return f(); }' > m.c\n"
        "gcc m.c -L. -lf -o m; echo 'int g() { return 1; }' > f.c; gcc -shared -fPIC -o libf.so f.c; LD_LIBRARY_PATH=. ./m",
        "symbol lookup error",
    ),
    Broken("library-empty", ': > ext.so; "$PYTHON" -c "import ext"', "file too short"),
    Broken(
        "library-text",
        "head -c 4000 /dev/zero | tr '\\0' 'x' > ext.so; \"$PYTHON\" -c \"import ext\"",
        "invalid ELF header",
    ),
    Broken(
        "module-missing",
        '"$PYTHON" -c "import flashinfer_that_is_not_there"',
        "No module named 'flashinfer_that_is_not_there'",
    ),
    Broken(
        "name-missing",
        '"$PYTHON" -c "from json import AutoModelForVision2Seq"',
        "cannot import name 'AutoModelForVision2Seq'",
    ),
    Broken(
        "ninja-missing",
        "\"$PYTHON\" -c \"import subprocess; subprocess.run(['ninja', '-v'], env={'PATH': '.'})\"",
        "directory: 'ninja'",
    ),
    Broken(
        "compiler-inside-python",
        "echo '#include <cublasLt.h>' > a.cpp\n"
        "\"$PYTHON\" - <<'EOF'\nimport subprocess, sys\n"
        "try:\n    subprocess.run(['g++', '-c', 'a.cpp'], check=True)\n"
        "except subprocess.CalledProcessError as e:\n    raise RuntimeError('Ninja build failed. Ninja output:') from e\nEOF\n",
        "fatal error: cublasLt.h",
    ),
    Broken(
        "lookup-then-value",
        "\"$PYTHON\" - <<'EOF'\ntry:\n    {}['fastest']\nexcept KeyError:\n    raise ValueError('unknown policy fastest')\nEOF\n",
        "ValueError: unknown policy fastest",
    ),
    Broken(
        "chain-of-three",
        "\"$PYTHON\" - <<'EOF'\ntry:\n    try:\n        open('/nowhere/weights.bin')\n    except OSError as e:\n"
        "        raise RuntimeError('loading failed') from e\nexcept RuntimeError as e:\n    raise Exception('start "
        "failed') from e\nEOF\n",
        "'/nowhere/weights.bin'",
    ),
    Broken(
        "disk-full",
        "\"$PYTHON\" -c \"f = open('/dev/full', 'w'); f.write('x' * 99999); f.flush()\"",
        "No space left on device",
    ),
    Broken("shell-disk-full", "cat /etc/hostname /etc/passwd > /dev/full", "No space left on device"),
    Broken("no-memory", '"$PYTHON" -c "bytearray(1 << 60)"', "MemoryError"),
    Broken(
        "address-in-use",
        '"$PYTHON" -c "from socket import socket as s; a = s(); a.bind((\'127.0.0.1\', 0)); b = s(); b.bind(a.getsockname())"',
        "Address already in use",
    ),
    Broken(
        "dangling-cache",
        'ln -s nowhere .cache; "$PYTHON" -c "import os; os.mkdir(\'.cache\')"',
        "File exists: '.cache'",
    ),
    Broken(
        "cpp-exception",
        "printf '#include <stdexcept>\\nint main() { throw std::runtime_error(\"frobnicator is upside down\"); }' > a.cpp; "
        "g++ a.cpp -o a; ./a",
        "what():  frobnicator is upside down",
    ),
    Broken("uv-conflict", _WHEELS + "printf 'aa\\nbb\\n' | " + _UV, "Because"),
    Broken("uv-no-version", _WHEELS + "printf 'cc==3.0\\n' | " + _UV, "cc==3.0"),
    Broken(
        "uv-hash",
        _WHEELS + "printf 'cc==1.0 --hash=sha256:" + "0" * 64 + "\\n' > r.txt\n"
        '"$UV" venv -q --offline --python "$PYTHON" v; "$UV" pip install -q --offline --no-index --find-links . '
        "--python v/bin/python --require-hashes -r r.txt",
        "Hash mismatch for",
    ),
)
