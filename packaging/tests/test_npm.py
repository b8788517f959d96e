"""The npm packages, installed from a registry on this machine."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from builders import npm
from builders.common import NAME, ROOT, TARGETS

from .registry import Registry
from .support import TARGET, TIMEOUT, PackageTest, need, need_own_system, package

# The Node that the other tests install, which is newer than the oldest that works.
PINNED_NODE = ROOT / ".tools/bin/node"


class NpmTest(PackageTest):
    def setUp(self):
        super().setUp()
        need_own_system()
        need("node", "npm")
        self.registry = Registry(archives(self.folder))
        self.addCleanup(self.registry.close)

    def npm(self, *command, **further):
        settings = {
            "npm_config_registry": self.registry.url,
            "npm_config_userconfig": "/dev/null",
            "npm_config_cache": str(self.folder / "cache"),
            "npm_config_audit": "false",
            "npm_config_fund": "false",
            "npm_config_update_notifier": "false",
        }
        return self.run_program(*command, **settings | further)

    def installed(self):
        """Installs the package as `npm install --global` does, and returns the command."""
        prefix = self.folder / "prefix"
        self.npm("npm", "install", "--global", "--prefix", prefix, NAME)
        return prefix / "bin" / NAME

    def test_both_commands_start_the_program_of_this_platform(self):
        command = self.installed()
        fetched = {NAME, npm.platform_name(TARGET)}
        self.assertEqual(self.registry.fetched, fetched, "programs of other platforms were fetched")
        self.assert_plexus(command)
        self.assert_plexus(command.with_name("plexus"))

    def test_npx_starts_it_without_an_installation(self):
        said = self.npm("npx", "--yes", NAME, "--version")
        self.assertRegex(said.stdout, r"^plexus \d+\.\d+\.\d+")

    def test_signals_reach_the_program(self):
        for node in nodes():
            for number in [signal.SIGTERM, signal.SIGINT]:
                with self.subTest(node=node, signal=number):
                    started = self.serving_http(node)
                    # After a graceful end, the program has this exit code, and node none.
                    self.assertEqual(started.signal(number), 0)
                    started.wait_for_the_end_of_output()

    def test_a_launcher_that_is_killed_leaves_no_orphan(self):
        for node in nodes():
            with self.subTest(node=node):
                started = self.serving_http(node)
                started.signal(signal.SIGKILL)
                started.wait_for_the_end_of_output()

    def test_a_signal_that_ends_the_program_shows_in_the_exit_code(self):
        for node in nodes():
            with self.subTest(node=node):
                started = self.serving_http(node)
                for child in children(started.process.pid):
                    os.kill(child, signal.SIGKILL)
                    self.assertEqual(started.process.wait(TIMEOUT), 128 + signal.SIGKILL)

    def test_a_platform_without_a_program_is_named(self):
        command = self.installed()
        for folder in command.parent.parent.rglob(f"node_modules/@{NAME}"):
            shutil.rmtree(folder)
        said = self.run_program(command, "--version", check=False)
        self.assertEqual(said.returncode, 1)
        self.assertIn(f"the package {npm.platform_name(TARGET)} is missing", said.stderr)

    def serving_http(self, node):
        """The launcher, run by this Node, when the program serves HTTP."""
        launcher = self.launcher()
        started = self.start(node, launcher, "serve", "--http", "127.0.0.1:0")
        started.error_with("listening on")
        return started

    def launcher(self):
        """The launcher with the program beside it, without npm."""
        folder = self.folder / "packages"
        for name, archive in [
            (NAME, package("npm launcher")),
            (npm.platform_name(TARGET), package("npm")),
        ]:
            content = folder / "node_modules" / name
            if not content.exists():
                content.mkdir(parents=True)
                unpack = ["tar", "-xzf", archive, "--strip-components=1", "-C", content]
                subprocess.run(unpack, check=True)
        return folder / "node_modules" / NAME / "launcher.js"


def archives(folder):
    """The packages of all platforms; those of others have a program that does nothing."""
    nothing = folder / "nothing"
    nothing.write_text("#!/bin/sh\nexit 3\n")
    others = folder / "others"
    others.mkdir()
    made = [package("npm launcher"), package("npm")]
    made += [npm.build(nothing, other, others) for other in TARGETS.values() if other != TARGET]
    return [path.read_bytes() for path in made]


def nodes():
    """The Node of this machine, and the pinned one: the launcher uses what a newer one can do."""
    found = [Path(shutil.which("node"))]
    return found + [PINNED_NODE] if PINNED_NODE.exists() else found


def children(pid):
    """The processes that this one started and that run our program, on Linux."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    programs = {int(child): Path(f"/proc/{child}/exe").readlink() for child in listed}
    return [child for child, program in programs.items() if program.name == "plexus"]
