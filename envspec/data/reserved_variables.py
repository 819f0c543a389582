"""Which variables a profile may set: not those that a shell or envspec owns."""

from __future__ import annotations

import re

_JOBS = "MAX_JOBS"


_CLEARED = ("PYTHONHOME", "PYTHONPATH")
"""They would put other packages before the locked ones."""


# Names of the shells' own variables. To some of them a shell gives a meaning when they are assigned to; zsh
# evaluates what is assigned to its integer ones, which would run code out of a profile.
_SHELL_OWNED = re.compile(
    r"_|_ENVSPEC.*|BASH.*|ZSH.*|ZLS_.*|TRY_.*|COMP_.*|HIST.*|PROMPT.*|R?PS[1-4]|R?PROMPT[0-9]?|SPROMPT|R?PROMPT.*"
    r"|IFS|OPT(IND|ARG|ERR)|E?[UG]ID|PPID|USERNAME|SHELLOPTS|ENV|SHLVL|PWD|OLDPWD|RANDOM|SRANDOM|SECONDS|LINENO"
    r"|EPOCH.*|FUNCNAME|FUNCNEST|GROUPS|DIRSTACK(SIZE)?|ERRNO|COLUMNS|LINES|SAVEHIST|KEYTIMEOUT|LISTMAX"
    r"|LOGCHECK|MAIL.*|TTY(IDLE)?|CDPATH|FPATH|FIGNORE|MANPATH|MODULE_PATH|PSVAR|WATCH|NULLCMD|READNULLCMD"
    r"|KEYBOARD_HACK|WORDCHARS|TMPPREFIX|TMPSUFFIX|CPUTYPE|MACHTYPE|OSTYPE|HOSTTYPE|VENDOR|HOST|SIGNALS|STATUS"
    r"|PIPESTATUS|COPROC|MAPFILE|REPLY|READLINE_.*|POSIXLY_CORRECT|TIMEFMT|BAUD|REPORT.*|ARG(C|V0)|DEFAULT|FCEDIT|PERIOD"
)


_ENVSPEC_OWNED = frozenset(
    {"PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT"}
    | {*_CLEARED, _JOBS}
)


def settable(name: str) -> bool:
    # Lower case belongs to the shells (zsh: path, status, argv); the proxy variables are the known exception.
    if re.fullmatch(r"[A-Z_][A-Z0-9_]*|[a-z]+_proxy", name) is None:
        return False
    return name not in _ENVSPEC_OWNED and _SHELL_OWNED.fullmatch(name) is None
