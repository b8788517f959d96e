"""The Python wheel, which carries the program.

pip installs `plexus` as it is. `plexus-mcp`, which has the name of the package so that `uvx` and
`pipx run` find it, is a few lines of Python that become that program.
"""

import base64
import hashlib
import io
import time
import zipfile

from . import elf, notices
from .archive import EXECUTABLE, PLAIN
from .common import (
    COMPRESSION,
    GLIBC,
    MACOS,
    NAME,
    PACKAGING,
    PROGRAM,
    SUMMARY,
    about,
    epoch,
    licences,
    manifest,
    version_parts,
)

MODULE = "plexus_mcp"
ENTRY_POINTS = f"[console_scripts]\n{NAME} = {MODULE}:main\n"


def python_version():
    """The version as Python writes it: 0.2.0, or 0.2.0rc1."""
    number, pre = version_parts()
    return number + ({"alpha": "a", "beta": "b", "rc": "rc"}[pre[0]] + pre[1] if pre else "")


def platform_tag(binary, target):
    """The systems on which the program runs, as pip names them."""
    if target.os == "darwin":
        return f"macosx_{MACOS[0]}_{MACOS[1]}_{target.machine}"
    if target.libc == "musl":
        return f"musllinux_1_1_{target.machine}"
    major, minor = max(elf.needs(binary).glibc, GLIBC)
    tag = f"manylinux_{major}_{minor}_{target.machine}"
    # Installers of before 2021 know only this name.
    return f"{tag}.manylinux2014_{target.machine}" if (major, minor) == GLIBC else tag


def build(binary, target, folder):
    """Writes the wheel, and returns its path."""
    tag = f"py3-none-{platform_tag(binary, target)}"
    stem = f"{MODULE}-{python_version()}"
    info = f"{stem}.dist-info"
    files = {
        f"{stem}.data/scripts/{PROGRAM}": (binary.read_bytes(), EXECUTABLE),
        f"{info}/METADATA": (metadata(), PLAIN),
        f"{info}/WHEEL": (wheel_file(tag), PLAIN),
        f"{info}/entry_points.txt": (ENTRY_POINTS.encode(), PLAIN),
    }
    for source in sorted((PACKAGING / "python" / MODULE).glob("*.py")):
        files[f"{MODULE}/{source.name}"] = (source.read_bytes(), PLAIN)
    texts = licences() | {notices.FILE_NAME: notices.text(target.triple)}
    for name, text in texts.items():
        files[f"{info}/licenses/{name}"] = (text, PLAIN)
    files[f"{info}/RECORD"] = (record(files, info), PLAIN)
    path = folder / f"{stem}-{tag}.whl"
    path.write_bytes(archive(files))
    return path


def metadata():
    """The description of the package."""
    names = [*licences(), notices.FILE_NAME]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {NAME}",
        f"Version: {python_version()}",
        f"Summary: {SUMMARY}",
        f"License-Expression: {manifest()['license']}",
        *(f"License-File: {name}" for name in names),
        f"Project-URL: Source, {manifest()['repository']}",
        "Keywords: mcp,gateway,proxy,llm,agent",
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
        "",
    ]
    return "\n".join(lines).encode() + b"\n" + about()


def wheel_file(tag):
    """The tags, one for each platform of the file's name."""
    python, abi, platforms = tag.split("-")
    tags = "".join(f"Tag: {python}-{abi}-{platform}\n" for platform in platforms.split("."))
    head = "Wheel-Version: 1.0\nGenerator: plexus-packaging\nRoot-Is-Purelib: false\n"
    return (head + tags).encode()


def record(files, info):
    """The list of all files with their hashes, which installers check."""
    lines = []
    for path, (data, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{info}/RECORD,,\n"]).encode()


def archive(files):
    """A zip file that depends on nothing but what is in it."""
    data = io.BytesIO()
    # The format begins in 1980.
    moment = max(time.gmtime(epoch())[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION) as wheel:
        for path, (content, mode) in sorted(files.items()):
            entry = zipfile.ZipInfo(path, moment)
            entry.create_system = 3
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
    return data.getvalue()
