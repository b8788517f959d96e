"""What all packages share: the name, the version, the time, the targets, and the documents."""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"

NAME = "plexus-mcp"
PROGRAM = "plexus"
SUMMARY = "Joins every MCP client to every MCP server: any revision, any transport, one binary."
LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"]

# The oldest system with which the Linux packages work: CentOS 7 has this version.
GLIBC = (2, 17)
# The oldest macOS, which the build passes on as MACOSX_DEPLOYMENT_TARGET.
MACOS = (11, 0)


# How well packages are compressed. Tests set it to 1, since they do not ask for small ones.
COMPRESSION = int(os.environ.get("PLEXUS_PACKAGING_COMPRESSION", "9"))


class Failure(Exception):
    """A message for the user, who needs no traceback."""


def main(work):
    """Runs a script, and prints its failure as one line."""
    # A script that builds for minutes shows what it does while it does it.
    sys.stdout.reconfigure(line_buffering=True)
    try:
        sys.exit(work())
    except Failure as failure:
        sys.exit(f"{Path(sys.argv[0]).name}: {failure}")


@dataclass(frozen=True)
class Target:
    """A platform for which packages are made."""

    triple: str
    os: str
    cpu: str
    libc: str | None = None

    @property
    def npm(self):
        """The name of the platform in npm packages."""
        musl = "-musl" if self.libc == "musl" else ""
        return f"{self.os}-{self.cpu}{musl}"

    @property
    def deb(self):
        """Debian's name of the architecture, if a .deb is made."""
        if self.libc != "glibc":
            return None
        return {"x64": "amd64", "arm64": "arm64"}[self.cpu]

    @property
    def machine(self):
        """The architecture as the tags of wheels have it."""
        if self.os == "darwin" and self.cpu == "arm64":
            return "arm64"
        return self.triple.partition("-")[0]


TARGETS = {
    target.triple: target
    for target in [
        Target("x86_64-unknown-linux-gnu", "linux", "x64", "glibc"),
        Target("aarch64-unknown-linux-gnu", "linux", "arm64", "glibc"),
        Target("x86_64-unknown-linux-musl", "linux", "x64", "musl"),
        Target("aarch64-unknown-linux-musl", "linux", "arm64", "musl"),
        Target("x86_64-apple-darwin", "darwin", "x64"),
        Target("aarch64-apple-darwin", "darwin", "arm64"),
    ]
}


def target_called(triple):
    """The target with this name."""
    if triple not in TARGETS:
        raise Failure(f"there is no target '{triple}'; the targets are: {' '.join(TARGETS)}")
    return TARGETS[triple]


@cache
def manifest():
    """What all crates share, from the workspace's Cargo.toml."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]


def version():
    """The version, as Cargo and npm write it: 0.2.0, or 0.2.0-rc.1."""
    return manifest()["version"]


def version_parts():
    """The version's number, and its pre-release as a kind and a number, if it is one."""
    number, _, pre = version().partition("-")
    if not pre:
        return number, None
    named = re.fullmatch(r"(alpha|beta|rc)\.?(\d+)", pre)
    if not named:
        raise Failure(f"{version()}: a pre-release is called alpha.N, beta.N or rc.N")
    return number, (named[1], named[2])


@cache
def epoch():
    """The time that all files of packages have, so that the same commit makes the same packages."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    try:
        commit = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
        return int(subprocess.run(commit, check=True, capture_output=True, text=True).stdout)
    except (OSError, subprocess.CalledProcessError):
        raise Failure("this is not a git clone: set SOURCE_DATE_EPOCH") from None


@cache
def host():
    """The target on which this runs."""
    said = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return re.search(r"^host: (\S+)$", said, re.MULTILINE)[1]


def output_of(binary, *arguments):
    """What the program prints, without the settings of the user who runs this."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ.get("PATH", "")}
        command = [str(Path(binary).resolve()), *arguments]
        try:
            run = subprocess.run(command, check=True, capture_output=True, env=environment)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Failure(f"{binary} does not run here: {error}") from None
        return run.stdout


def check_version(binary):
    """Refuses a program of another version than that of the packages."""
    said = output_of(binary, "--version").decode().strip()
    if said != f"{PROGRAM} {version()}":
        raise Failure(f"{binary} is '{said}', but the packages are of version {version()}")


def man_pages(binary):
    """The manual pages of all commands: names and texts."""
    with tempfile.TemporaryDirectory() as folder:
        output_of(binary, "man", folder)
        return {page.name: page.read_bytes() for page in sorted(Path(folder).iterdir())}


# The shells, and how their completions call the file.
COMPLETIONS = {"bash": "plexus.bash", "fish": "plexus.fish", "zsh": "_plexus"}


def completions(binary):
    """The completions: file names and texts."""
    return {file: output_of(binary, "completions", shell) for shell, file in COMPLETIONS.items()}


def licences():
    """The texts of the licences: file names and texts."""
    return {name: (ROOT / name).read_bytes() for name in LICENCES}


def about():
    """The text that a registry shows."""
    return (PACKAGING / "about.md").read_bytes()
