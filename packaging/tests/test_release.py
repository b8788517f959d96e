"""What a release has besides packages: checksums and the Homebrew formula."""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from builders import formula, sbom, tarball
from builders.common import PACKAGING, TARGETS, Failure, version

from .support import PackageTest


class ReleaseTest(PackageTest):
    def setUp(self):
        super().setUp()
        self.release = self.folder / "release"
        self.release.mkdir()
        for target in TARGETS.values():
            (self.release / tarball.file_name(target)).write_text(target.triple)

    def run_release(self, *arguments):
        command = [str(PACKAGING / "release"), str(self.release), *arguments]
        # With the Cargo of who runs this.
        return subprocess.run(command, capture_output=True, text=True)

    def test_every_file_has_its_checksum(self):
        said = self.run_release("--tag", f"v{version()}")
        self.assertEqual(said.returncode, 0, said.stderr)
        lines = (self.release / "SHA256SUMS").read_text().splitlines()
        listed = dict(reversed(line.split("  ")) for line in lines)
        for path in self.release.iterdir():
            if path.name != "SHA256SUMS":
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                self.assertEqual(listed.pop(path.name), digest)
        self.assertEqual(listed, {})
        for name in ["install.sh", formula.FILE_NAME, sbom.file_name()]:
            self.assertTrue((self.release / name).exists(), name)

    def test_a_tag_of_another_version_is_refused(self):
        said = self.run_release("--tag", "v999.0.0")
        self.assertEqual(said.returncode, 1)
        self.assertIn(f"the version in Cargo.toml is {version()}", said.stderr)

    def test_the_formula_has_the_checksum_of_each_archive(self):
        sums = {tarball.file_name(target): target.triple * 2 for target in TARGETS.values()}
        text = formula.build(self.folder, sums).read_text()
        self.assertNotRegex(text, r"@[A-Z]")
        pairs = re.findall(r'/(plexus-[^/"]+)"\n\s+sha256 "([^"]+)"', text)
        self.assertEqual(len(pairs), 4)
        for name, digest in pairs:
            self.assertEqual(digest, sums[name])
        if shutil.which("ruby"):
            self.run_program("ruby", "-c", self.folder / formula.FILE_NAME)

    def test_a_formula_without_an_archive_is_refused(self):
        with self.assertRaisesRegex(Failure, "SHA256:aarch64-apple-darwin"):
            formula.build(self.folder, {})

    def test_the_folder_of_a_release_is_whole(self):
        given = os.environ.get("PLEXUS_TEST_RELEASE")
        if not given:
            self.skipTest("no folder of a release was given")
        folder = Path(given)
        subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True)
        names = {path.name for path in folder.iterdir()}
        for target in TARGETS.values():
            self.assertIn(tarball.file_name(target), names)
