"""`python -m envspec.diagnose diagnose LOG [--json] [--out DIR]`: the verb alone, without the command line around it."""

from __future__ import annotations

import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Exit 0 whenever the log was read, 2 for a bad call."""
    import argparse

    parser = argparse.ArgumentParser(prog="envspec diagnose")
    parser.add_argument("log", help="a file, or - for standard input")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments[1:] if arguments[:1] == ["diagnose"] else arguments)

    from envspec.diagnose import diagnose, render_text, to_json
    from envspec.diagnose.environment import facts_of

    facts = facts_of(options.out) if options.out else None
    try:
        if options.log == "-":
            answer = diagnose(sys.stdin.buffer, facts=facts)
        else:
            with Path(options.log).open("rb") as stream:
                answer = diagnose(stream, facts=facts)
    except OSError as error:
        print(f"envspec diagnose: cannot read {options.log}: {error.strerror}", file=sys.stderr)
        return 2
    sys.stdout.write(to_json(answer) if options.json else render_text(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
