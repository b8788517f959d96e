"""What the tests of packages share."""

import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest
from functools import cache
from pathlib import Path

from builders import deb, npm, tarball, wheel
from builders.common import host, target_called, version

# Longer than anything here takes, even on a busy machine.
TIMEOUT = 120

BINARY = Path(os.environ["PLEXUS_TEST_BINARY"])
TARGET = target_called(os.environ["PLEXUS_TEST_TARGET"])

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "packaging", "version": "0"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def need(*tools):
    """Skips the test if one of these programs is missing."""
    for tool in tools:
        if not shutil.which(tool):
            raise unittest.SkipTest(f"{tool} is missing")


def need_own_system():
    """Skips the test if installers refuse the package here: a static program runs anywhere, but the
    packages with it are for systems with musl."""
    if TARGET.triple != host():
        raise unittest.SkipTest(f"{TARGET.triple} is not what this system is")


@cache
def package(kind):
    """The package of this kind, made from the program once in a run."""
    folder = BINARY.parent / "packages"
    folder.mkdir(exist_ok=True)
    match kind:
        case "tarball":
            return tarball.build(BINARY, TARGET, folder)
        case "deb":
            return deb.build(BINARY, TARGET, folder)
        case "wheel":
            return wheel.build(BINARY, TARGET, folder)
        case "npm":
            return npm.build(BINARY, TARGET, folder)
        case "npm launcher":
            return npm.build_launcher(folder)


class PackageTest(unittest.TestCase):
    """A test with a folder and a home directory of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="plexus-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.home = self.folder / "home"
        self.home.mkdir()

    def environment(self, **further):
        """The environment of a new user: no settings of Plexus, and nothing of who runs this."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PLEXUS_", "XDG_", "npm_config_"))
        }
        return kept | {"HOME": str(self.home)} | further

    def run_program(self, *command, check=True, **environment):
        """Runs a program to its end."""
        run = subprocess.run(
            [str(part) for part in command],
            env=self.environment(**environment),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        if check and run.returncode != 0:
            self.fail(f"{command} ended with {run.returncode}:\n{run.stdout}{run.stderr}")
        return run

    def start(self, *command, **environment):
        """Starts a program that serves standard input."""
        return Started(self, [str(part) for part in command], self.environment(**environment))

    def assert_plexus(self, *command, **environment):
        """Asserts that the command is our program, and that it serves MCP."""
        said = self.run_program(*command, "--version", **environment).stdout
        self.assertEqual(said, f"plexus {version()}\n")
        wrong = self.run_program(*command, "no-such-command", check=False, **environment)
        self.assertEqual(wrong.returncode, 2, "the exit code of the program is passed on")
        started = self.start(*command, "serve", "--stdio", **environment)
        started.assert_serves()
        self.assertEqual(started.close(), 0)


class Started:
    """A program that serves MCP on its standard input and output."""

    def __init__(self, test, command, environment):
        self.test = test
        self.process = subprocess.Popen(
            command,
            env=environment,
            cwd=test.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines, self.errors = queue.Queue(), queue.Queue()
        self._follow(self.process.stdout, self.lines)
        self._follow(self.process.stderr, self.errors)
        test.addCleanup(self._clean_up)

    def _follow(self, stream, lines):
        def follow():
            for line in stream:
                lines.put(line)
            lines.put(None)
            stream.close()

        threading.Thread(target=follow, daemon=True).start()

    def ask(self, message):
        """Sends a request, and returns the result of its response."""
        self.send(message)
        while True:
            line = self.lines.get(timeout=TIMEOUT)
            self.test.assertIsNotNone(line, f"the program ended: {self.errors_so_far()}")
            answer = json.loads(line)
            if answer.get("id") == message["id"]:
                return answer["result"]

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def assert_serves(self):
        """Asserts that it answers, and has tools."""
        answer = self.ask(INITIALIZE)
        self.test.assertEqual(answer["serverInfo"]["version"], version())
        self.send(INITIALIZED)
        self.test.assertTrue(self.ask(LIST)["tools"])

    def error_with(self, text):
        """The next line on standard error that has this text."""
        while True:
            line = self.errors.get(timeout=TIMEOUT)
            self.test.assertIsNotNone(line, f"standard error ended without '{text}'")
            if text in line:
                return line

    def errors_so_far(self):
        lines = []
        while not self.errors.empty():
            lines.append(self.errors.get() or "")
        return "".join(lines)

    def close(self):
        """Closes standard input, and returns the exit code."""
        self.process.stdin.close()
        return self.process.wait(TIMEOUT)

    def signal(self, number):
        """Sends a signal, and returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT)

    def wait_for_the_end_of_output(self):
        """Waits until every process that has its standard output has ended."""
        while self.lines.get(timeout=TIMEOUT) is not None:
            pass

    def _clean_up(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(TIMEOUT)
        if not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
