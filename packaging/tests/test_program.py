"""The program itself: what it needs of the system."""

import os
import re
import unittest
from pathlib import Path

from builders import elf
from builders.common import GLIBC, ROOT

from .support import BINARY, TARGET, PackageTest, need


class ProgramTest(PackageTest):
    @unittest.skipUnless(TARGET.os == "linux", "this is about Linux")
    def test_its_libraries_are_read_as_other_tools_do(self):
        need("readelf")
        needed = elf.needs(BINARY)
        said = self.run_program("readelf", "--wide", "--dynamic", BINARY).stdout
        self.assertEqual(list(needed.libraries), re.findall(r"\(NEEDED\).*\[(.*)\]", said))
        said = self.run_program("readelf", "--wide", "--version-info", BINARY).stdout
        named = [(0, 0), *re.findall(r"Name: GLIBC_(\d+)\.(\d+)", said)]
        newest = max((int(major), int(minor)) for major, minor in named)
        self.assertEqual(needed.glibc, newest)

    def test_it_runs_on_old_systems(self):
        self.is_for_release()
        if TARGET.libc == "glibc":
            self.assertLessEqual(elf.needs(BINARY).glibc, GLIBC)

    def test_it_names_no_folder_of_the_machine_that_built_it(self):
        self.is_for_release()
        content = BINARY.read_bytes()
        for folder in [ROOT, os.environ.get("CARGO_HOME", Path.home() / ".cargo")]:
            self.assertNotIn(str(folder).encode(), content)

    def is_for_release(self):
        if "PLEXUS_TEST_IS_FOR_RELEASE" not in os.environ:
            self.skipTest("it was not built by packaging/build")
