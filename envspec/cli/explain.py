"""`envspec explain`: what a code means, how it shows and how to fix it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

import click
import msgspec

from envspec.cli.codes import COMMANDS, Code, all_codes, nearest_code
from envspec.cli.options import json_option
from envspec.cli.show import show
from envspec.diagnose.knowledge import Default, Family, knowledge
from envspec.report.errors import UsageError
from envspec.report.explanations import explanation

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_FIRST_CLAUSE = re.compile(r"(?<=[^.])[.:;](?= )")
_WIDTH = 100
_EXAMPLES = 4


class ExplainedCode(msgspec.Struct, frozen=True, kw_only=True):
    """Describes one code. `group` is the command whose finding it is, `error`, or `cause` for a cause that `diagnose` names.

    `exit` is the exit code of an error. `page` is empty in a list of all codes.
    """

    code: str
    group: str
    means: str
    exit: int | None = None
    page: str = ""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the result of `explain`."""

    version: int = 1
    command: str = "explain"
    codes: tuple[ExplainedCode, ...]


@click.command("explain")
@click.argument("code", required=False)
@json_option
def explain_command(code: str | None, as_json: bool) -> None:
    """Explain CODE: what it means, how it shows and how to fix it. Without CODE, list all.

    CODE is the word in square brackets of a message: of an error, of a finding, or of a cause that diagnose names.
    """
    if code is None:
        show(Explained(codes=tuple(every_code())), render_list, as_json=as_json)
    else:
        show(Explained(codes=explain(code)), render_pages, as_json=as_json)


def every_code() -> Iterator[ExplainedCode]:
    """Yield every code without its page: findings by command, then errors, then causes."""
    codes = sorted(all_codes(), key=lambda row: (_rank(row.command), row.code))
    yield from (_listed(row) for row in codes)
    yield from (_cause(name, row) for name, row in sorted(_causes().items()))


def explain(word: str) -> tuple[ExplainedCode, ...]:
    """Return what is known of a code, as it may be copied from a message (`error[torch-abi]:`).

    It is more than one where an error and a cause have one name. Raises UsageError `unknown-code`.
    """
    wanted = word.strip().lower().rpartition("[")[2].rstrip("]:")
    found = [_listed(row, explanation(wanted) or "") for row in all_codes() if row.code == wanted]
    causes = _causes()
    if wanted in causes:
        found.append(_cause(wanted, causes[wanted], with_page=True))
    if not found:
        known = [*(row.code for row in all_codes()), *causes]
        raise UsageError("unknown-code", f"envspec has no code {word!r}", fix=nearest_code(wanted, known))
    return tuple(found)


def render_list(found: Explained) -> Iterator[str]:
    """Yield the list of codes, a heading for each group."""
    width = max(len(row.code) for row in found.codes)
    group = ""
    for row in found.codes:
        if row.group != group:
            yield from ("", _heading(row.group)) if group else (_heading(row.group),)
            group = row.group
        yield f"  {row.code:<{width}}  {row.means}"
    yield ""
    yield "envspec explain CODE tells more."


def render_pages(found: Explained) -> str:
    """Return the pages of a code."""
    return "\n".join(f"{row.code}: {row.means}\n\n{row.page}" for row in found.codes)


def _rank(command: str) -> int:
    return COMMANDS.index(command) if command else len(COMMANDS)


def _heading(group: str) -> str:
    if group == "error":
        return "Errors, which end a command:"
    return "Causes that envspec diagnose names:" if group == "cause" else f"Findings of envspec {group}:"


def _listed(row: Code, page: str = "") -> ExplainedCode:
    return ExplainedCode(
        code=row.code,
        group=row.command or "error",
        means=row.means,
        exit=None if row.command else int(row.exit.exit),
        page=page,
    )


def _causes() -> dict[str, Family | Default]:
    """Return the causes by name; where several rows have one name, the more special one, which is a family's."""
    tables = knowledge()
    found: dict[str, Family | Default] = {row.family: row for row in tables.defaults.values()}
    return found | {family.id: family for family in reversed(tables.families)}


def _cause(name: str, row: Family | Default, *, with_page: bool = False) -> ExplainedCode:
    meaning = _without_placeholders(row.meaning)
    return ExplainedCode(
        code=name,
        group="cause",
        means=_FIRST_CLAUSE.split(meaning)[0].rstrip(".") + ".",
        page="\n".join(_page(row, meaning)) + "\n" if with_page else "",
    )


def _page(row: Family | Default, meaning: str) -> Iterator[str]:
    """Yield the page of a cause: what it means, lines that show it, and how to fix it."""
    yield from textwrap.wrap(meaning, _WIDTH)
    yield ""
    if isinstance(row, Family):
        yield "A line of the log that shows it holds one of these, for example:"
        yield from (f"  {text}" for text in row.contains[:_EXAMPLES])
        yield ""
    fix = _without_placeholders(row.fix)
    yield from textwrap.wrap(f"fix: {fix}", _WIDTH, subsequent_indent="     ")
    if isinstance(row, Family):
        yield ""
        yield f"seen in: {row.source} ({row.as_of})"


def _without_placeholders(text: str) -> str:
    """Return a text of the tables with its places for parts of the log (`{symbol}`) as words: SYMBOL."""
    return _PLACEHOLDER.sub(lambda found: found[1].upper(), text)
