"""The Homebrew formula, with the checksums of the tarballs."""

import re

from . import tarball
from .common import PACKAGING, TARGETS, Failure, manifest, version

FILE_NAME = "plexus-mcp.rb"


def build(folder, sums):
    """Fills the template in, and writes it; `sums` has the SHA-256 of each file by its name."""
    values = {"VERSION": version(), "REPOSITORY": manifest()["repository"]}
    for target in TARGETS.values():
        name = tarball.file_name(target)
        if name in sums:
            values[f"SHA256:{target.triple}"] = sums[name]

    def value(place):
        if place[1] not in values:
            raise Failure(f"the formula needs {place[1]}: is the tarball in the folder?")
        return values[place[1]]

    template = (PACKAGING / "homebrew/plexus-mcp.rb.in").read_text()
    path = folder / FILE_NAME
    path.write_text(re.sub(r"@([A-Z0-9]+(?::[a-z0-9_-]+)?)@", value, template))
    return path
