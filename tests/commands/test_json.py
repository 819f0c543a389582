"""`--json`: every command prints one JSON value on standard output, whatever its end, and the schema describes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from envspec.cli.main import cli
from scripts.make_schema import RESULTS, schemas
from tests.support.command import ENVSPEC, Done, envspec
from tests.support.site import TrustSite

SCHEMA = json.loads(schemas()["report.schema.json"])

# Each ends in an error: the words behind the command, the exit code, the error's code and what it says.
ERRORS: dict[str, tuple[tuple[str, ...], int, str, str]] = {
    "audit": (("--out", "nothing"), 2, "output-missing", "nothing is not an environment that envspec built"),
    "build": (("nothing.toml",), 2, "profile-missing", "there is no profile nothing.toml"),
    "check": (("wrong.toml",), 2, "profile-unknown-key", "unknown key gpu.archh"),
    "diagnose": (("nothing.log",), 2, "log-unreadable", "cannot read nothing.log: No such file or directory"),
    "diff": (("8", "9"), 2, "diff-what", "there is no generation 8"),
    "digest": (("--out", "nothing"), 2, "output-missing", "nothing is not an environment that envspec built"),
    "doctor": (("nothing.toml", "no-check"), 2, "doctor-check", "doctor has no check 'no-check'"),
    "explain": (("nothing",), 2, "unknown-code", "envspec has no code 'nothing'"),
    "gc": (("--keep", "-1"), 2, "usage", "Invalid value for '--keep': -1 is not in the range x>=0."),
    "generations": (("--out", "nothing"), 2, "output-missing", "nothing is not an environment that envspec built"),
    "init": (("x.toml", "--gpu", "nothing"), 2, "unknown-gpu", "no GPU of the table is called 'nothing'"),
    "lock": (("wrong.toml", "--locked"), 2, "profile-unknown-key", "unknown key gpu.archh"),
    "match": (
        ("lib", "--torch", "0.1", "--machine", "x86_64"), 2, "unknown-torch",
        "envspec does not know what torch 0.1 exports on x86_64",
    ),
    "probe": (("--out", "nothing"), 2, "output-missing", "nothing is not an environment that envspec built"),
    "profiles": (("nothing",), 2, "usage", "Got unexpected extra argument (nothing)"),
    "repair": (("--out", "nothing"), 2, "output-missing", "nothing is not an environment that envspec built"),
    "rollback": (("--out", "nothing", "1"), 2, "output-missing", "nothing is not an environment that envspec built"),
    "upgrade": (("wrong.toml", "--yes"), 2, "profile-unknown-key", "unknown key gpu.archh"),
    "verify": (("--out", "nothing"), 2, "output-missing", "nothing is not an environment that envspec built"),
    "why": (("nothing", "wrong.toml"), 2, "profile-unknown-key", "unknown key gpu.archh"),
}  # fmt: skip

# Each comes to a result, in the order in which they are called.
CALLS: dict[str, tuple[str, ...]] = {
    "init": ("mine.toml", "--gpu", "RTX 5090"),
    "lock": ("good.toml", "--python", sys.executable),
    "build": ("good.toml", "--python", sys.executable),
    "check": ("good.toml",),
    "why": ("app", "good.toml"),
    "upgrade": ("good.toml", "app", "--yes", "--python", sys.executable),
    "audit": (),
    "verify": (),
    "repair": (),
    "digest": (),
    "generations": (),
    "rollback": ("1",),
    "gc": (),
    "diff": ("good.toml", "out"),
    "diagnose": ("server.log", "--out", "out"),
    "doctor": ("host-python",),
    "probe": ("no-such-probe", "--list"),
    "explain": ("torch-abi",),
    "profiles": (),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> TrustSite:
    """A directory with a local index, a profile that can be built and one with a wrong key."""
    found = TrustSite(tmp_path_factory.mktemp("json"))
    (found.root / "wrong.toml").write_text('[gpu]\narchh = "12.0a"\n[packages]\n', encoding="utf-8")
    (found.root / "server.log").write_text("ImportError: libnvrtc.so.13: cannot open shared object file\n")
    return found


def parsed(done: Done, *kinds: str) -> dict[str, Any]:
    """Standard output as one JSON value, which is of one of these kinds in the schema and of the schema as a whole."""
    found: dict[str, Any] = json.loads(done.out)
    jsonschema.validate(found, SCHEMA)
    jsonschema.validate(
        found, {"anyOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds], "$defs": SCHEMA["$defs"]}
    )
    return found


def test_every_command_but_run_has_the_option_and_a_row_in_each_table() -> None:
    with_json = {
        name for name, command in cli.commands.items() if "as_json" in {p.name for p in command.params}
    }
    assert with_json == set(cli.commands) - {"run"}
    assert with_json == set(RESULTS) == set(ERRORS)
    assert with_json - set(CALLS) == {"match"}  # which asks an index, whatever --offline says


@pytest.mark.parametrize("verb", ERRORS)
def test_an_error_is_json(site: TrustSite, verb: str) -> None:
    words, code, name, what = ERRORS[verb]
    done = envspec(verb, *words, "--json", cwd=site.root)
    found = parsed(done, "ErrorReport")
    assert (done.code, found["command"], found["version"]) == (code, verb, 1)
    assert {key: found["error"][key] for key in ("code", "what", "exit")} == {
        "code": name, "what": what, "exit": code
    }  # fmt: skip
    assert list(found["error"]) == ["code", "what", "where", "why", "fix", "log", "exit"]
    assert "error[" not in done.err


def test_a_result_is_json(site: TrustSite) -> None:
    for verb, words in CALLS.items():
        done = envspec(verb, *words, "--json", cwd=site.root)
        found = parsed(done, *(kind.__name__ for kind in RESULTS[verb]))
        assert found["version"] == 1, verb
        # A repair ends with a verification, whose report it prints.
        assert found.get("command", verb) == {"repair": "verify"}.get(verb, verb)
        assert done.code == int(any(f["severity"] == "error" for f in found.get("findings", ()))), done


@pytest.mark.parametrize(
    ("words", "command", "what"),
    [
        (("check", "--jsno", "--json"), "check", "No such option '--jsno'. Did you mean '--json'?"),
        (("check", "--json"), "check", "Missing argument 'PROFILE'."),
        (("chekc", "--json"), "", "No such command 'chekc'. Did you mean 'check'?"),
        (("--json", "check"), "check", "No such option '--json'. Did you mean '--version'?"),
        (
            ("build", "good.toml", "--json", "--locked", "--frozen"),
            "build",
            "--locked and --frozen exclude each other",
        ),
    ],
)
def test_a_wrong_call_is_json(site: TrustSite, words: tuple[str, ...], command: str, what: str) -> None:
    done = envspec(*words, cwd=site.root)
    found = parsed(done, "ErrorReport")
    assert (done.code, done.err, found["command"]) == (2, "", command)
    assert (found["error"]["code"], found["error"]["what"]) == ("usage", what)
    assert found["error"]["fix"].endswith(" --help")


def test_the_option_of_a_command_that_is_run_is_not_ours(site: TrustSite) -> None:
    for words in (
        ("run", "--out", "nothing", "x", "--json"),
        ("run", "--out", "nothing", "--", "x", "--json"),
    ):
        done = envspec(*words, cwd=site.root)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("error[output-missing]: ")


def test_a_fault_of_envspec_is_json_and_a_traceback(site: TrustSite) -> None:
    fault = (
        "import envspec.data.shipped as m; m.shipped_profiles = lambda: 1 / 0\n"
        "from envspec.cli.main import main; main()"
    )
    for options in ([], ["--json"]):
        done = subprocess.run(
            [sys.executable, "-c", fault, "profiles", *options], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 4
        assert "ZeroDivisionError: division by zero\n" in done.stderr
        if options:
            found = parsed(Done(done.returncode, done.stdout, done.stderr), "ErrorReport")
            assert (found["error"]["code"], found["error"]["exit"]) == ("internal-error", 4)
        else:
            assert done.stdout == ""
            assert "error[internal-error]: envspec failed with ZeroDivisionError" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_is_json(tmp_path: Path, number: signal.Signals, code: int) -> None:
    pipe = tmp_path / "log"
    os.mkfifo(pipe)
    with (
        subprocess.Popen(
            [*ENVSPEC, "diagnose", str(pipe), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process,
        pipe.open("wb") as log,
    ):  # opens when the command reads it
        log.write(b"a line\n")
        log.flush()
        time.sleep(0.2)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    found = parsed(Done(process.returncode, out.decode(), err.decode()), "ErrorReport")
    assert (process.returncode, found["error"]["code"], found["error"]["exit"]) == (code, "interrupted", code)


def test_a_question_does_not_stand_between_the_json(site: TrustSite) -> None:
    (site.root / "asked.toml").write_text((site.root / "good.toml").read_text())
    done = envspec(
        "upgrade", "asked.toml", "--python", sys.executable, "--out", "asked", "--json", cwd=site.root
    )
    assert done.code == 130 and "build this? [y/N]: " in done.err
    assert parsed(done, "ErrorReport")["error"]["code"] == "interrupted"
