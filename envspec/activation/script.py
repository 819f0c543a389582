"""The environment script as text."""

from __future__ import annotations

import hashlib

import msgspec

from envspec.activation.settings import TOOLCHAIN, Base, Value, settings_of
from envspec.activation.values import SCRIPT, ScriptValues
from envspec.data.shipped import shipped
from envspec.host.memory import HostFiles


def render_script(values: ScriptValues) -> str:
    """The text of the environment script."""
    return _render(values, HostFiles())


def fingerprint(values: ScriptValues) -> str:
    """Changes whenever the text of the script would, without the cost of rendering it."""
    template = (shipped("templates") / f"{SCRIPT}.j2").read_bytes()
    settings = msgspec.json.encode((settings_of(values), values, HostFiles()))
    return hashlib.sha256(template + settings).hexdigest()


def quoted(text: str) -> str:
    """The text as one word of POSIX shell, whatever it holds. A shell word cannot hold NUL."""
    if "\0" in text:
        raise ValueError("a shell word cannot hold NUL")
    # Never two quotes side by side inside of quotes: zsh's RC_QUOTES would read them as one.
    return "'" + text.replace("'", "'\\''") + "'"


def _render(values: ScriptValues, host: HostFiles) -> str:
    import jinja2  # only a build that writes a script needs it

    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader(shipped("templates")),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    jinja.filters["sh"] = quoted
    jinja.filters["sh_value"] = _shell_value
    return jinja.get_template(f"{SCRIPT}.j2").render(
        script=SCRIPT,
        settings=settings_of(values),
        values=values,
        host=host,
        toolchain=TOOLCHAIN + values.toolchain,
    )


def _shell_value(value: Value) -> str:
    place = f'"$_envspec_{value.base.value}"' if value.base is not Base.NONE else ""
    return place + quoted(value.text)
