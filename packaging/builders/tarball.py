"""The tar.gz: the program with its manual pages, completions and licences."""

from . import notices
from .archive import EXECUTABLE, PLAIN, tar_gz
from .common import PROGRAM, ROOT, completions, licences, man_pages, version


def file_name(target):
    """The name of the archive, without a version: the newest release has a fixed address."""
    return f"{PROGRAM}-{target.triple}.tar.gz"


def build(binary, target, folder):
    """Writes the archive, and returns its path."""
    inside = {
        PROGRAM: (binary.read_bytes(), EXECUTABLE),
        "README.md": ((ROOT / "README.md").read_bytes(), PLAIN),
    }
    for name, text in (licences() | {notices.FILE_NAME: notices.text(target.triple)}).items():
        inside[name] = (text, PLAIN)
    for name, text in man_pages(binary).items():
        inside[f"man/man1/{name}"] = (text, PLAIN)
    for name, text in completions(binary).items():
        inside[f"completions/{name}"] = (text, PLAIN)
    top = f"{PROGRAM}-{version()}-{target.triple}"
    path = folder / file_name(target)
    path.write_bytes(tar_gz({f"{top}/{name}": file for name, file in inside.items()}))
    return path
