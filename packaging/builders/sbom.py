"""The bill of materials: every crate of the program, as CycloneDX has it."""

import json
import uuid
from datetime import UTC, datetime

from .common import NAME, SUMMARY, epoch, version
from .crates import checksums, crates, metadata, tree

# The target whose crates are listed. Others differ in crates for their system only.
TRIPLE = "x86_64-unknown-linux-gnu"


def file_name():
    """The name of the file; `.cdx.json` is what tools look for."""
    return f"{NAME}-{version()}.cdx.json"


def build(folder, triple=TRIPLE):
    """Writes the bill, and returns its path."""
    path = folder / file_name()
    path.write_text(json.dumps(bill(triple), indent=2) + "\n")
    return path


def bill(triple):
    """The bill as an object."""
    packages = crates(triple)
    in_program = tree(triple, "normal")
    ids = {package["id"]: reference(package) for package in packages}
    components = [component(package, in_program) for package in packages]
    program = next(c for c in components if c["name"] == NAME)
    components.remove(program)
    program |= {"type": "application", "description": SUMMARY}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"{program['purl']}#{epoch()}")
    nodes = (node for node in metadata(triple)["resolve"]["nodes"] if node["id"] in ids)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial.urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": program,
            "properties": [{"name": "cdx:rust:target", "value": triple}],
        },
        "components": components,
        "dependencies": [
            {
                "ref": ids[node["id"]],
                "dependsOn": sorted(ids[d["pkg"]] for d in node["deps"] if counts(d, ids)),
            }
            for node in sorted(nodes, key=lambda node: ids[node["id"]])
        ],
    }


def counts(dependency, ids):
    """Whether a dependency is one of the program, and not only of its tests."""
    kinds = {kind["kind"] for kind in dependency["dep_kinds"]}
    return dependency["pkg"] in ids and kinds != {"dev"}


def reference(package):
    """The package URL, which names a package in every ecosystem."""
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, in_program):
    """One crate."""
    key = (package["name"], package["version"])
    found = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        # What only builds the program is not in it.
        "scope": "required" if key in in_program else "excluded",
        "purl": reference(package),
    }
    if package["license"]:
        # Cargo accepted a slash for "or" once.
        found["licenses"] = [{"expression": " ".join(package["license"].replace("/", " OR ").split())}]
    if key in checksums():
        found["hashes"] = [{"alg": "SHA-256", "content": checksums()[key]}]
    if package["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found
