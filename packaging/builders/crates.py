"""The crates that a program is made of, from Cargo."""

import json
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

from .common import NAME, ROOT, Failure


def cargo(*arguments):
    """What cargo prints."""
    command = ["cargo", *arguments, "--locked", "--color", "never"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if run.returncode != 0:
        raise Failure(f"{' '.join(command)}: {run.stderr.strip()}")
    return run.stdout


@cache
def metadata(triple):
    """The packages of the workspace and all their dependencies, and who depends on whom."""
    return json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", triple))


@cache
def tree(triple, edges):
    """The names and versions of the crates in the program.

    `cargo metadata` has more: features that only tests want bring crates of their own.
    """
    options = ["--package", NAME, "--edges", edges, "--target", triple]
    said = cargo("tree", *options, "--prefix", "none", "--format", "{p}")
    lines = (re.match(r"(\S+) v(\S+)", line) for line in said.splitlines())
    return frozenset((line[1], line[2]) for line in lines if line)


def crates(triple, edges="normal,build"):
    """The packages of the program and of what builds it, sorted."""
    wanted = tree(triple, edges)
    found = [p for p in metadata(triple)["packages"] if (p["name"], p["version"]) in wanted]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


@cache
def checksums():
    """The SHA-256 of the crates that come from a registry, by name and version."""
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    return {(p["name"], p["version"]): p["checksum"] for p in locked if "checksum" in p}


def folder(package):
    """Where the source of a package is."""
    return Path(package["manifest_path"]).parent
