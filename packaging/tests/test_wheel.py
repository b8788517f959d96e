"""The Python wheel."""

import subprocess
import sys
import zipfile

from .support import PackageTest, need_own_system, package


class WheelTest(PackageTest):
    def setUp(self):
        super().setUp()
        need_own_system()
        pip = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True)
        if pip.returncode != 0:
            self.skipTest("pip is missing")

    def install(self, *options, python=sys.executable):
        """Installs the package by its name, as users do, from a folder instead of the index."""
        wheels = ["--no-index", "--find-links", package("wheel").parent]
        quiet = ["--quiet", "--no-cache-dir", "--disable-pip-version-check"]
        # A setting of this machine would name further places.
        alone = {"PIP_CONFIG_FILE": "/dev/null", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": ""}
        pip = [sys.executable, "-m", "pip", "--python", python, "install"]
        self.run_program(*pip, *wheels, *quiet, *options, "plexus-mcp", **alone)

    def environment_with_it(self):
        """A virtual environment in which it is installed."""
        folder = self.folder / "environment"
        self.run_program(sys.executable, "-m", "venv", "--without-pip", folder)
        self.install(python=folder / "bin/python")
        return folder

    def test_an_environment_has_both_commands(self):
        environment = self.environment_with_it()
        self.assert_plexus(environment / "bin/plexus")
        self.assert_plexus(environment / "bin/plexus-mcp")
        self.assert_plexus(environment / "bin/python", "-m", "plexus_mcp")

    def test_commands_work_through_links(self):
        # pipx and uv link to commands of environments of their own.
        environment = self.environment_with_it()
        links = self.folder / "links"
        links.mkdir()
        for name in ["plexus", "plexus-mcp"]:
            (links / name).symlink_to(environment / "bin" / name)
            self.run_program(links / name, "--version")

    def test_a_folder_of_packages_works(self):
        target = self.folder / "target"
        self.install("--target", target)
        self.assert_plexus(sys.executable, "-m", "plexus_mcp", PYTHONPATH=str(target))

    def test_no_process_outlives_the_command(self):
        environment = self.environment_with_it()
        started = self.start(environment / "bin/plexus-mcp", "serve", "--stdio")
        started.assert_serves()
        started.process.kill()
        started.wait_for_the_end_of_output()

    def test_a_missing_program_is_named(self):
        environment = self.environment_with_it()
        (environment / "bin/plexus").unlink()
        said = self.run_program(environment / "bin/plexus-mcp", check=False)
        self.assertEqual(said.returncode, 1)
        self.assertIn("the program plexus is in none of", said.stderr)
        self.assertNotIn("Traceback", said.stderr)

    def test_the_archive_is_whole(self):
        with zipfile.ZipFile(package("wheel")) as wheel:
            self.assertIsNone(wheel.testzip())
            names = wheel.namelist()
            record = next(name for name in names if name.endswith("/RECORD"))
            listed = [line.split(",")[0] for line in wheel.read(record).decode().splitlines()]
        self.assertEqual(sorted(listed), sorted(names))
