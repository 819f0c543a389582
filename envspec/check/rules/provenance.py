"""Where the set comes from: is the lock this profile's, are claims true, and will it be the same tomorrow?"""

from __future__ import annotations

from collections.abc import Iterator

from envspec.check.facts import CheckInput, Selection, admits
from envspec.check.rules import RULES
from envspec.data.compatibility import known_breakages
from envspec.report.findings import Finding, error, note, warning
from envspec.report.remedies import RunCommand


@RULES.rule("The lock was made from this profile.")
def lock_outdated(given: CheckInput) -> Iterator[Finding]:
    again = RunCommand(("envspec", "lock", str(given.profile.path)), "lock again")
    if given.lock.profile_digest != given.profile.lock_digest:
        yield error(
            "lock-outdated",
            given.profile.lock_path.name,
            f"{given.profile.lock_path.name} was made from another version of {given.profile.path.name}",
            remedies=[again],
        )
    elif given.kept_digest not in ("", given.profile.lock_digest):
        yield warning(
            "lock-outdated",
            given.profile.lock_path.name,
            f"{given.profile.lock_path.name} was made from another version of {given.profile.path.name}; "
            "what a new lock would hold was checked",
            remedies=[again],
        )


@RULES.rule("A label such as +cu130 is true of what is locked.")
def local_label_claim(given: CheckInput, selection: Selection) -> Iterator[Finding]:
    for request in given.profile.packages:
        if not request.local or request.name != "torch" or "torch" not in selection.chosen:
            continue
        version = selection.chosen["torch"].version
        built_for = selection.torch_cuda()
        actual = version.local or (f"cu{built_for[0]}{built_for[1]}" if built_for else None)
        if actual is not None and actual != request.local:
            yield error(
                "local-label-claim",
                "torch",
                f"the profile claims torch {version.public}+{request.local}, the locked build is {actual}",
                dependency_paths=selection.why("torch"),
                fix=f'write torch = "{version.public}+{actual}"',
            )


@RULES.rule("The profile says until when releases count, so that locking again gives the same set.")
def floating(given: CheckInput, selection: Selection) -> Iterator[Finding]:
    if not given.profile.exclude_newer:
        yield warning(
            "floating",
            "resolve.exclude-newer",
            "the profile names no date: a new lock takes whatever is newest, of packages that were never tested together",
            fix="exclude-newer = the day after the release of your main package",
        )


@RULES.rule("No two packages of the set are known to break each other.")
def known_broken(selection: Selection) -> Iterator[Finding]:
    for row in known_breakages():
        first, second = selection.version(row.package), selection.version(row.beside)
        if first is None or second is None:
            continue
        if admits(row.versions, first) and admits(row.beside_versions, second):
            yield error(
                "known-broken",
                row.package,
                f"{row.package} {first} does not work beside {row.beside} {second}: {row.why}",
                dependency_paths=(*selection.why(row.package), *selection.why(row.beside)),
                fix=row.fix,
            )


@RULES.rule("No key of the profile is spelt as older releases of envspec spelt it.")
def profile_old_key(given: CheckInput) -> Iterator[Finding]:
    for old, new in given.profile.old_keys:
        yield note(
            "profile-old-key",
            old,
            f"{old} is the old name of {new}, and is read as such",
            fix=f"write {new.rpartition('.')[2]} instead of {old.rpartition('.')[2]}",
        )
