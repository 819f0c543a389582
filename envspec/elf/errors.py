"""What the ELF reader says when a file is not what it should be.

These are plain exceptions, not `envspec.report.errors`: a broken library is a *finding* about somebody's package,
and only the caller knows the package. `code` is stable; `reason` is one sentence without a final stop.
"""

from __future__ import annotations

from typing import NamedTuple


class ElfIdentity(NamedTuple):
    """Holds the first 20 bytes of an ELF file, which every class and byte order shares.

    `bits` is 32 or 64; `byte_order` "little" or "big"; `machine` and `type` are the numbers `e_machine`
    and `e_type` (names: `machine_name`).
    """

    bits: int
    byte_order: str
    machine: int
    type: int

    @property
    def machine_name(self) -> str:
        """Return the machine as `uname -m` spells it, or `EM_<number>`."""
        return _MACHINES.get(self.machine, f"EM_{self.machine}")


# The machines that turn up in wheels; the numbers are e_machine of the System V gABI.
_MACHINES = {
    3: "i686",
    20: "ppc",
    21: "ppc64le",
    22: "s390x",
    40: "armv7l",
    62: "x86_64",
    183: "aarch64",
    190: "cuda",
    224: "amdgpu",
    243: "riscv64",
    247: "bpf",
    258: "loongarch64",
}


class ElfError(Exception):
    """The file cannot be read as an ELF64 little-endian file.

    Codes: `elf-unreadable` (the operating system refuses it), `elf-not-elf`, `elf-unsupported` (see
    `ElfUnsupported`), `elf-truncated` (a table lies outside the file), `elf-malformed` (tables contradict
    each other), `elf-too-large` (a table is beyond what any real file has), `elf-incomplete` (see
    `ElfIncomplete`).
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{reason} [{code}]")
        self.code = code
        self.reason = reason


class ElfUnsupported(ElfError):
    """Describes an ELF file of another class or byte order; `identity` says which."""

    def __init__(self, identity: ElfIdentity) -> None:
        what = f"ELF{identity.bits} {identity.byte_order}-endian for {identity.machine_name}"
        super().__init__("elf-unsupported", f"{what}; only ELF64 little-endian is read")
        self.identity = identity


class ElfIncomplete(ElfError):
    """Only the first part of the file is at hand and the answer lies behind it.

    `need` is a length in bytes, from the start of the file, that is certainly not less than what is
    needed for the next step; reading that much may reveal a further need.
    """

    def __init__(self, need: int, reason: str) -> None:
        super().__init__("elf-incomplete", reason)
        self.need = need
