"""The licences of the crates in the program, which must come with it."""

from collections import defaultdict
from functools import cache

from .crates import crates, folder

FILE_NAME = "THIRD-PARTY-LICENSES.txt"

# The files with licences and notices, at the top of a crate and of the C code that some carry.
PATTERNS = ["LICEN[CS]E*", "COPYING*", "NOTICE*", "UNLICENSE*", "COPYRIGHT*"]
WITH_C_CODE = {"aws-lc-sys": ["aws-lc"]}


@cache
def text(triple):
    """Each text once, with the crates that have it."""
    owners, expressions = defaultdict(list), {}
    for package in crates(triple, "normal"):
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']}"
        expressions[name] = package["license"] or "see its text below"
        for file in _files(package):
            owners[file.read_text(errors="replace").strip()].append(name)
    parts = ["Plexus is made with these crates.\n"]
    parts += [f"{name}: {licence}" for name, licence in expressions.items()]
    for content, names in owners.items():
        parts += ["", "=" * 80, ", ".join(dict.fromkeys(names)), "=" * 80, "", content]
    return ("\n".join(parts) + "\n").encode()


def _files(package):
    top = folder(package)
    for place in [top, *(top / below for below in WITH_C_CODE.get(package["name"], []))]:
        found = {file for pattern in PATTERNS for file in place.glob(pattern)}
        yield from sorted(file for file in found if file.is_file())
