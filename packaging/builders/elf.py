"""What a Linux program needs of the system: its libraries, and the versions of glibc's symbols."""

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from .common import Failure

DYNAMIC = 6
VERSIONS_NEEDED = 0x6FFFFFFE
TAG_NEEDED = 1


@dataclass(frozen=True)
class Needs:
    """What a program needs to start."""

    # The shared libraries; none if the program is static.
    libraries: tuple[str, ...]
    # The version of glibc, as two numbers; (0, 0) if it is not used.
    glibc: tuple[int, int]


def needs(program):
    """Reads the dynamic section and the table of symbol versions of a 64-bit little-endian ELF."""
    data = Path(program).read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise Failure(f"{program} is not a 64-bit Linux program")
    first, size, count = (
        struct.unpack_from("<Q", data, 0x28)[0],
        *struct.unpack_from("<HH", data, 0x3A),
    )
    # Of each section: name, kind, flags, address, offset, size, and the section with its strings.
    sections = [struct.unpack_from("<IIQQQQI", data, first + size * n) for n in range(count)]
    libraries, glibc = [], (0, 0)
    for _, kind, _, _, offset, length, link in sections:
        if kind == DYNAMIC:
            for at in range(offset, offset + length, 16):
                tag, value = struct.unpack_from("<QQ", data, at)
                if tag == TAG_NEEDED:
                    libraries.append(_text(data, sections[link][4] + value))
        elif kind == VERSIONS_NEEDED:
            names = _version_names(data, offset, sections[link][4])
            glibc = max(glibc, _newest_glibc(names))
    return Needs(tuple(libraries), glibc)


def _text(data, at):
    return data[at : data.index(b"\0", at)].decode()


def _version_names(data, at, strings):
    while True:
        _, count, _, aux, following = struct.unpack_from("<HHIII", data, at)
        entry = at + aux
        for _ in range(count):
            _, _, _, name, further = struct.unpack_from("<IHHII", data, entry)
            yield _text(data, strings + name)
            entry += further
        if following == 0:
            return
        at += following


def _newest_glibc(names):
    found = (re.match(r"GLIBC_(\d+)\.(\d+)", name) for name in names)
    return max(((int(name[1]), int(name[2])) for name in found if name), default=(0, 0))
