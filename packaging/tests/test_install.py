"""The install script, with a release on this machine."""

import functools
import hashlib
import http.server
import shutil
import threading
from pathlib import Path

from builders.common import PACKAGING

from .support import PackageTest, need, need_own_system, package


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class InstallTest(PackageTest):
    def setUp(self):
        super().setUp()
        need_own_system()
        need("curl", "tar")
        self.release = self.folder / "release"
        self.release.mkdir()
        shutil.copy(package("tarball"), self.release)
        self.archive = self.release / package("tarball").name
        self.list_checksum(hashlib.sha256(self.archive.read_bytes()).hexdigest())
        shutil.copy(PACKAGING / "install.sh", self.release)
        serve = functools.partial(Quiet, directory=self.release)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def list_checksum(self, digest):
        lines = f"{'0' * 64}  another-{self.archive.name}\n{digest}  {self.archive.name}\n"
        (self.release / "SHA256SUMS").write_text(lines)

    def install(self, **further):
        """What the documentation says: the script comes through a pipe."""
        command = f"curl -fsSL {self.url}/install.sh | sh"
        settings = {"PLEXUS_DOWNLOAD_URL": self.url} | further
        return self.run_program("sh", "-c", command, check=False, **settings)

    def assert_refused(self, because):
        said = self.install()
        self.assertEqual(said.returncode, 1, said.stdout)
        self.assertIn(because, said.stderr)
        self.assertEqual(list(self.home.iterdir()), [], "something was installed")

    def test_the_program_is_installed_and_starts(self):
        said = self.install()
        self.assertEqual(said.returncode, 0, said.stderr)
        installed = self.home / ".local"
        self.assertIn(f"is installed: {installed}/bin/plexus", said.stdout)
        self.assertIn("to your PATH", said.stdout)
        self.assert_plexus(installed / "bin/plexus")
        self.assertTrue((installed / "share/man/man1/plexus.1").exists())
        self.assertTrue((installed / "share/bash-completion/completions/plexus").exists())

    def test_another_folder_can_be_named(self):
        prefix = self.folder / "with a space"
        said = self.install(PLEXUS_PREFIX=str(prefix))
        self.assertEqual(said.returncode, 0, said.stderr)
        self.run_program(prefix / "bin/plexus", "--version")

    def test_a_program_that_runs_is_replaced(self):
        self.install()
        program = self.home / ".local/bin/plexus"
        started = self.start(program, "serve", "--stdio")
        started.assert_serves()
        self.assertEqual(self.install().returncode, 0)
        self.assertEqual(started.close(), 0)

    def test_a_changed_archive_is_refused(self):
        with self.archive.open("ab") as archive:
            archive.write(b"!")
        self.assert_refused("nothing was installed")

    def test_another_checksum_is_refused(self):
        self.list_checksum("1" * 64)
        self.assert_refused("instead of " + "1" * 64)

    def test_a_list_without_the_archive_is_refused(self):
        (self.release / "SHA256SUMS").write_text(f"{'0' * 64}  another-{self.archive.name}\n")
        self.assert_refused(f"SHA256SUMS has no checksum of {self.archive.name}")

    def test_a_missing_archive_is_refused(self):
        self.archive.unlink()
        self.assert_refused("cannot be downloaded")

    def test_nothing_is_installed_without_a_program_for_checksums(self):
        tools = self.folder / "tools"
        tools.mkdir()
        for tool in ["curl", "getconf", "mkdir", "mktemp", "rm", "sed", "sh", "tar", "uname"]:
            (tools / tool).symlink_to(shutil.which(tool))
        command = [tools / "sh", self.release / "install.sh"]
        further = {"PLEXUS_DOWNLOAD_URL": self.url, "PATH": str(tools)}
        said = self.run_program(*command, check=False, **further)
        self.assertEqual(said.returncode, 1, said.stdout)
        self.assertIn("sha256sum or shasum is needed", said.stderr)

    def test_a_script_that_was_cut_off_does_nothing(self):
        script = (PACKAGING / "install.sh").read_text()
        cut = self.folder / "cut.sh"
        cut.write_text(script.removesuffix('main "$@"\n'))
        said = self.run_program("sh", cut, PLEXUS_DOWNLOAD_URL=self.url)
        self.assertEqual((said.stdout, list(self.home.iterdir())), ("", []))

    def test_shells_other_than_bash_read_it(self):
        for shell in ["dash", "busybox", "ksh", "zsh"]:
            if shutil.which(shell):
                applet = ["sh"] if shell == "busybox" else []
                self.run_program(shell, *applet, "-n", Path(PACKAGING / "install.sh"))
