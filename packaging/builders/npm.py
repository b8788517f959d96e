"""The npm packages: one with the launcher, and one for each platform with its program."""

import json

from . import notices
from .archive import EXECUTABLE, PLAIN, tar_gz
from .common import (
    NAME,
    PACKAGING,
    PROGRAM,
    SUMMARY,
    TARGETS,
    about,
    licences,
    manifest,
    version,
)


def platform_name(target):
    """The name of the package with the program of this platform."""
    return f"@{NAME}/{target.npm}"


def described(name, **further):
    """A package.json."""
    members = {
        "name": name,
        "version": version(),
        "description": SUMMARY,
        "license": manifest()["license"],
        "repository": {"type": "git", "url": f"git+{manifest()['repository']}.git"},
        "homepage": manifest()["repository"],
        **further,
    }
    return (json.dumps(members, indent=2) + "\n").encode()


def build(binary, target, folder):
    """Writes the package of this platform, and returns its path."""
    system = {"os": [target.os], "cpu": [target.cpu]}
    if target.libc:
        system["libc"] = [target.libc]
    readme = f"The program of the package `{NAME}` for {target.triple}.\n"
    files = {
        "package.json": (described(platform_name(target), **system, preferUnplugged=True), PLAIN),
        "README.md": (readme.encode(), PLAIN),
        notices.FILE_NAME: (notices.text(target.triple), PLAIN),
        f"bin/{PROGRAM}": (binary.read_bytes(), EXECUTABLE),
    }
    return _write(folder / f"{NAME}-{target.npm}-{version()}.tgz", files)


def build_launcher(folder):
    """Writes the package that users install, and returns its path."""
    package = described(
        NAME,
        keywords=["mcp", "modelcontextprotocol", "gateway", "proxy", "llm", "agent"],
        engines={"node": ">=18"},
        bin={NAME: "launcher.js", PROGRAM: "launcher.js"},
        files=["launcher.js"],
        # npm installs the one that fits, and only that.
        optionalDependencies={platform_name(t): version() for t in TARGETS.values()},
    )
    launcher = (PACKAGING / "npm/launcher.js").read_bytes()
    files = {
        "package.json": (package, PLAIN),
        "README.md": (about(), PLAIN),
        "launcher.js": (launcher, EXECUTABLE),
    }
    return _write(folder / f"{NAME}-{version()}.tgz", files)


def _write(path, files):
    files |= {name: (text, PLAIN) for name, text in licences().items()}
    path.write_bytes(tar_gz({f"package/{name}": file for name, file in files.items()}))
    return path
