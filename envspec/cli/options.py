"""Options and arguments that several commands share, and the values they stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

profile_argument = click.argument("profile")

out_option = click.option(
    "--out",
    default="out",
    show_default=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The output directory.",
)
python_option = click.option(
    "--python", metavar="PATH|VERSION", help="Use this interpreter instead of the preferred one."
)
offline_option = click.option("--offline", is_flag=True, help="Use only what is in the caches.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result, or the error, as JSON.")
allow_option = click.option(
    "--allow", multiple=True, metavar="CODE", help="Turn errors with this code into notes; may be repeated."
)


def hash_option(text: str) -> Callable[[F], F]:
    """Return `--hash`, which is named `check_contents` in the code, with its help text."""
    return click.option("--hash", "check_contents", is_flag=True, help=text)
