"""What the operating system refused, in words: the last resort for errors that no stage has turned into its own."""

from __future__ import annotations

import errno

from envspec.report.errors import ExternalError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)

_KNOWN = {
    errno.ENOSPC: ("disk-full", "the disk is full", "free space, or name another --out"),
    errno.EDQUOT: ("disk-full", "the disk quota is used up", "free space, or name another --out"),
    errno.EACCES: ("no-permission", "permission denied", "check the owner and mode of that path"),
    errno.EPERM: ("no-permission", "operation not permitted", "check the owner and mode of that path"),
    errno.EROFS: ("read-only", "the file system is read-only", "name another --out"),
    errno.EIO: (
        "disk-failing",
        "the disk gave an input/output error",
        "check the disk (dmesg), or name another --out",
    ),
}


def explain_os_error(error: OSError) -> ExternalError:
    """Return the ExternalError that describes an OSError."""
    where = str(error.filename or "")
    if error.errno == errno.ENOENT and not where:  # only getcwd has no name to tell
        return ExternalError(
            "no-directory", "the current directory does not exist any more", fix="cd to one that does"
        )
    code, what, fix = _KNOWN.get(error.errno or 0, ("os-error", error.strerror or str(error), ""))
    return ExternalError(code, what, where=where, fix=fix)
