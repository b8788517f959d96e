"""The tar.gz."""

import shutil
import subprocess
import tarfile

from builders import notices, tarball
from builders.common import version

from .support import BINARY, TARGET, PackageTest, package


class TarballTest(PackageTest):
    def setUp(self):
        super().setUp()
        with tarfile.open(package("tarball")) as tar:
            tar.extractall(self.folder, filter="data")
        self.content = self.folder / f"plexus-{version()}-{TARGET.triple}"

    def test_the_program_starts(self):
        self.assert_plexus(self.content / "plexus")

    def test_the_licences_are_there(self):
        for name in ["LICENSE-MIT", "LICENSE-APACHE", "README.md"]:
            self.assertTrue((self.content / name).stat().st_size > 0, name)
        others = (self.content / notices.FILE_NAME).read_text()
        for crate in ["tokio ", "aws-lc-sys ", "libsqlite3-sys "]:
            self.assertIn(crate, others)

    def test_manual_pages_are_formatted(self):
        pages = sorted((self.content / "man/man1").iterdir())
        self.assertIn("plexus-serve.1", [page.name for page in pages])
        formatter = shutil.which("man") or shutil.which("mandoc")
        if not formatter:
            self.skipTest("man is missing")
        shown = self.run_program(formatter, "-l", self.content / "man/man1/plexus-serve.1")
        self.assertIn("--stdio", shown.stdout)

    def test_completions_work_in_bash(self):
        script = f"""
            source '{self.content}/completions/plexus.bash'
            COMP_WORDS=(plexus ser) COMP_CWORD=1
            _plexus plexus ser plexus
            echo "${{COMPREPLY[*]}}"
        """
        said = self.run_program("bash", "--norc", "-c", script).stdout
        self.assertEqual(said.split(), ["serve", "servers"])

    def test_completions_are_accepted_by_their_shells(self):
        for shell, name in [("zsh", "_plexus"), ("fish", "plexus.fish")]:
            file = self.content / "completions" / name
            self.assertTrue(file.stat().st_size > 0)
            if shutil.which(shell):
                subprocess.run([shell, "--no-execute", file], check=True)

    def test_the_same_program_makes_the_same_archive(self):
        again = self.folder / "again"
        again.mkdir()
        second = tarball.build(BINARY, TARGET, again)
        self.assertEqual(second.read_bytes(), package("tarball").read_bytes())
