"""The environment script as text."""

from __future__ import annotations

import hashlib

import msgspec

from envspec.activation.settings import TOOLCHAINS, Base, Value, settings_of
from envspec.activation.values import SCRIPT, ScriptValues
from envspec.data.shipped import shipped
from envspec.host.memory import HostFiles


def render_script(values: ScriptValues, host: HostFiles | None = None) -> str:
    """Return the text of the environment script. `host` is where the kernel tells about memory; tests put others there."""
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
    jinja.filters["sh_value"] = quoted_value
    return jinja.get_template(f"{SCRIPT}.j2").render(
        script=SCRIPT,
        settings=settings_of(values),
        values=values,
        host=host or HostFiles(),
        toolchain=TOOLCHAINS + values.toolchain,
    )


def fingerprint(values: ScriptValues) -> str:
    """Return a hash that changes whenever the text of the script would, without the cost of rendering it."""
    template = (shipped("templates") / f"{SCRIPT}.j2").read_bytes()
    settings = msgspec.json.encode((settings_of(values), values, HostFiles()))
    return hashlib.sha256(template + settings).hexdigest()


def script_sha256(values: ScriptValues) -> str:
    """Return the hash of the script without the profile's name, which only the prompt shows."""
    neutral = msgspec.structs.replace(values, prompt="envspec")
    return hashlib.sha256(render_script(neutral).encode()).hexdigest()


def quoted(text: str) -> str:
    """Return the text as one word of POSIX shell, whatever it holds. Raises ValueError for NUL, which no word can hold."""
    if "\0" in text:
        raise ValueError("a shell word cannot hold NUL")
    # Never two quotes side by side inside of quotes: zsh's RC_QUOTES would read them as one.
    return "'" + text.replace("'", "'\\''") + "'"


def quoted_value(value: Value) -> str:
    """Return a value as one word of POSIX shell, with the place that it is relative to."""
    place = f'"$_envspec_{value.base.value}"' if value.base is not Base.NONE else ""
    return place + quoted(value.text)
