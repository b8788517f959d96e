"""The bill of materials."""

import json

from builders import sbom
from builders.common import NAME, version
from builders.crates import cargo

from .support import TARGET, PackageTest


class SbomTest(PackageTest):
    def setUp(self):
        super().setUp()
        self.bill = json.loads(sbom.build(self.folder, TARGET.triple).read_text())

    def test_it_lists_what_cargo_compiles(self):
        options = ["--package", NAME, "--edges", "normal,build", "--target", TARGET.triple]
        said = cargo("tree", *options, "--prefix", "none", "--format", "{p}")
        compiled = {tuple(line.split()[:2]) for line in said.splitlines() if line}
        listed = {(c["name"], f"v{c['version']}") for c in self.bill["components"]}
        listed.add((NAME, f"v{version()}"))
        self.assertEqual(listed, compiled)

    def test_each_component_has_its_licence_and_its_address(self):
        for component in self.bill["components"]:
            name = component["name"]
            self.assertTrue(component["licenses"][0]["expression"], name)
            self.assertEqual(component["purl"], f"pkg:cargo/{name}@{component['version']}")
            self.assertTrue(component.get("hashes") or name.startswith(NAME), name)

    def test_dependencies_lead_to_components(self):
        program = self.bill["metadata"]["component"]
        known = {c["bom-ref"] for c in [program, *self.bill["components"]]}
        self.assertEqual({d["ref"] for d in self.bill["dependencies"]}, known)
        reached, following = set(), [program["bom-ref"]]
        depends = {d["ref"]: d["dependsOn"] for d in self.bill["dependencies"]}
        while following:
            reference = following.pop()
            if reference not in reached:
                reached.add(reference)
                following += depends[reference]
        self.assertEqual(reached, known, "every crate is there because something needs it")
