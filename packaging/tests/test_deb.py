"""The Debian package."""

import os
import re
import shutil
import unittest

from builders import deb
from builders.common import NAME

from .support import TARGET, PackageTest, need, package


@unittest.skipUnless(TARGET.deb, "there is no .deb for this platform")
class DebTest(PackageTest):
    def setUp(self):
        super().setUp()
        need("dpkg-deb")

    def test_the_files_are_root_s_and_in_their_places(self):
        listed = self.run_program("dpkg-deb", "--contents", package("deb")).stdout
        files = {}
        for line in listed.splitlines():
            mode, owner, _, _, _, path = line.split(maxsplit=5)
            self.assertEqual(owner, "root/root", path)
            self.assertNotIn(mode[5], "w", f"{path} is writable for its group")
            files[path] = mode
        self.assertEqual(files["./usr/bin/plexus"], "-rwxr-xr-x")
        self.assertIn("./usr/share/man/man1/plexus-serve.1.gz", files)
        self.assertIn("./usr/share/bash-completion/completions/plexus", files)
        self.assertIn(f"./usr/share/doc/{NAME}/copyright", files)

    def test_its_dependencies_are_what_the_program_is_linked_with(self):
        depends = self.run_program("dpkg-deb", "--field", package("deb"), "Depends").stdout
        self.assertRegex(depends, r"^libc6 \(>= 2\.\d+\)")
        need("ldd")
        program = self.installed()
        if "libgcc_s" in self.run_program("ldd", program).stdout:
            self.assertIn("libgcc-s1", depends)

    def test_dpkg_accepts_it_on_this_system(self):
        need("dpkg")
        # It knows no packages on a system of another kind, and so no libc6.
        if self.run_program("dpkg-query", "--show", "libc6", check=False).returncode != 0:
            self.skipTest("libc6 is not a package of this system")
        tried = self.run_program("dpkg", "--dry-run", "--install", package("deb"), check=False)
        said = tried.stdout + tried.stderr
        if "requested operation requires superuser privilege" in said:
            self.skipTest(said.strip())
        self.assertEqual(tried.returncode, 0, said)

    def test_the_installed_program_starts_and_can_be_removed(self):
        program = self.installed()
        self.assert_plexus(program)
        if not self.dpkg:
            return
        self.run_program(*self.dpkg, "--remove", NAME)
        self.assertFalse(program.exists())

    def test_a_prerelease_is_older_than_its_release(self):
        need("dpkg")
        sooner = re.sub(r"-1$", "~rc.1-1", deb.debian_version())
        self.run_program("dpkg", "--compare-versions", sooner, "lt", deb.debian_version())

    def installed(self):
        """Installs the package into a folder, with dpkg if it may, and returns the program."""
        root = self.folder / "root"
        program = root / "usr/bin/plexus"
        database = root / "var/lib/dpkg"
        for folder in ["info", "updates"]:
            (database / folder).mkdir(parents=True)
        (database / "status").touch()
        self.dpkg = None
        if shutil.which("dpkg") and os.geteuid() == 0:
            # The folder has no other packages, so what this one depends on is not there.
            self.dpkg = ["dpkg", f"--root={root}", "--force-depends", "--log=/dev/null"]
            self.run_program(*self.dpkg, "--install", package("deb"))
        else:
            self.run_program("dpkg-deb", "--extract", package("deb"), root)
        return program
