"""The Debian package, made by dpkg-deb."""

import gzip
import hashlib
import os
import shutil
import subprocess
import tempfile
from email.utils import formatdate
from pathlib import Path

from . import elf, notices
from .common import (
    COMPRESSION,
    GLIBC,
    NAME,
    PROGRAM,
    SUMMARY,
    Failure,
    completions,
    epoch,
    licences,
    man_pages,
    manifest,
    version_parts,
)

MAINTAINER = "The Plexus developers <plexus-mcp@users.noreply.github.com>"

# Which package has a library.
PACKAGES = {"libgcc_s.so.1": "libgcc-s1 | libgcc1"}
LIBC = {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "libutil.so.1"}

COMPLETIONS = {
    "plexus.bash": "usr/share/bash-completion/completions/plexus",
    "plexus.fish": "usr/share/fish/vendor_completions.d/plexus.fish",
    "_plexus": "usr/share/zsh/vendor-completions/_plexus",
}


def debian_version():
    """The version with the revision of the package; a pre-release sorts before its release."""
    number, pre = version_parts()
    return f"{number}~{pre[0]}.{pre[1]}-1" if pre else f"{number}-1"


def build(binary, target, folder):
    """Writes the package, and returns its path."""
    if not shutil.which("dpkg-deb"):
        raise Failure("dpkg-deb is missing, which makes the .deb")
    path = folder / f"{NAME}_{debian_version()}_{target.deb}.deb"
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "package"
        files = contents(binary, target)
        for name, (data, mode) in files.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(mode)
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN/control").write_text(control(binary, target, files))
        sums = [f"{hashlib.md5(data).hexdigest()}  {name}\n" for name, (data, _) in files.items()]
        (root / "DEBIAN/md5sums").write_text("".join(sums))
        for entry in [root, *root.rglob("*")]:
            if entry.is_dir():
                entry.chmod(0o755)
            os.utime(entry, (epoch(), epoch()))
        options = ["--root-owner-group", "-Zxz", f"-z{COMPRESSION}"]
        command = ["dpkg-deb", *options, "--build", str(root), str(path)]
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch())}
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        except subprocess.CalledProcessError as error:
            raise Failure(f"dpkg-deb: {error.stderr.strip()}") from None
    return path


def contents(binary, target):
    """What the package installs: paths, each with its bytes and its mode."""
    documents = f"usr/share/doc/{NAME}"
    files = {f"usr/bin/{PROGRAM}": (binary.read_bytes(), 0o755)}
    for name, text in man_pages(binary).items():
        files[f"usr/share/man/man1/{name}.gz"] = (_compressed(text), 0o644)
    for name, text in completions(binary).items():
        files[COMPLETIONS[name]] = (text, 0o644)
    files[f"{documents}/copyright"] = (copyright_text().encode(), 0o644)
    files[f"{documents}/{notices.FILE_NAME}.gz"] = (_compressed(notices.text(target.triple)), 0o644)
    files[f"{documents}/changelog.Debian.gz"] = (_compressed(changelog().encode()), 0o644)
    return dict(sorted(files.items()))


def copyright_text():
    """The licences, in the form that Debian reads."""
    parts = [
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/",
        f"Upstream-Name: Plexus\nSource: {manifest()['repository']}\n",
        "Files: *\nCopyright: The Plexus developers\nLicense: Apache-2.0 or Expat\n",
    ]
    for name, text in licences().items():
        short = "Apache-2.0" if "APACHE" in name else "Expat"
        lines = (f" {line}".rstrip() for line in text.decode().splitlines())
        parts.append(f"License: {short}\n" + "\n".join(l or " ." for l in lines) + "\n")
    return "\n".join(parts)


def changelog():
    """The one entry that Debian's tools want; what changed is in the repository."""
    return (
        f"{NAME} ({debian_version()}) stable; urgency=medium\n\n"
        f"  * Plexus {debian_version().rpartition('-')[0]}.\n\n"
        f" -- {MAINTAINER}  {formatdate(epoch())}\n"
    )


def control(binary, target, files):
    """The description of the package."""
    size = sum(-(-len(data) // 1024) for data, _ in files.values())
    return (
        f"Package: {NAME}\n"
        f"Version: {debian_version()}\n"
        f"Architecture: {target.deb}\n"
        f"Maintainer: {MAINTAINER}\n"
        f"Installed-Size: {size}\n"
        f"Depends: {', '.join(dependencies(binary))}\n"
        # The certificates of the authorities that HTTPS servers are checked against.
        "Recommends: ca-certificates\n"
        "Section: net\n"
        "Priority: optional\n"
        f"Homepage: {manifest()['repository']}\n"
        f"Description: gateway for the Model Context Protocol (MCP)\n"
        f" {SUMMARY}\n"
    )


def dependencies(binary):
    """The packages with the libraries that the program is linked with."""
    needed = elf.needs(binary)
    major, minor = max(needed.glibc, GLIBC)
    found = [f"libc6 (>= {major}.{minor})"]
    for library in needed.libraries:
        if library in PACKAGES:
            found.append(PACKAGES[library])
        elif library not in LIBC and not library.startswith("ld-linux-"):
            raise Failure(f"the package of {library} is unknown: packaging/builders/deb.py")
    return found


def _compressed(data):
    return gzip.compress(data, compresslevel=9, mtime=0)
