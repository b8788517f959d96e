"""The container image: its file, and the image itself where a Docker daemon is there."""

import json
import re
import shutil
import subprocess
import time
import uuid

from builders import elf
from builders.common import PACKAGING, version

from .support import BINARY, TARGET, TIMEOUT, PackageTest


def instructions():
    """The instructions of the last stage of the Dockerfile: names and arguments."""
    text = (PACKAGING / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    split = [line.split(maxsplit=1) for line in lines]
    last = max(index for index, (name, _) in enumerate(split) if name == "FROM")
    return [(name, arguments) for name, arguments in split[last:]]


class DockerfileTest(PackageTest):
    def argument(self, name):
        found = [arguments for other, arguments in instructions() if other == name]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def program_of(self, text):
        """The arguments of the program, in the form that needs no shell in the image."""
        command = json.loads(text[text.index("[") :])
        self.assertEqual(command[0], "/plexus")
        return command[1:]

    def test_nothing_runs_as_root(self):
        self.assertRegex(self.argument("USER"), r"^[1-9]\d*:[1-9]\d*$")

    def test_the_image_has_the_program_and_certificates(self):
        copied = [arguments.split()[-1] for name, arguments in instructions() if name == "COPY"]
        self.assertIn("/plexus", copied)
        self.assertIn("/etc/ssl/certs/", copied)
        self.assertIn(self.argument("VOLUME"), copied)

    def test_its_commands_are_those_of_the_program(self):
        entry = self.program_of(self.argument("ENTRYPOINT"))
        command = json.loads(self.argument("CMD"))
        address = command.index("--http") + 1
        self.assertTrue(command[address].endswith(":" + self.argument("EXPOSE")))
        command[address] = "127.0.0.1:0"
        started = self.start(BINARY, *entry, *command)
        url = re.search(r"http://\S+", started.error_with("listening on"))[0]
        health = self.program_of(self.argument("HEALTHCHECK"))
        self.run_program(BINARY, *health, url)

    def test_the_image_works(self):
        docker = shutil.which("docker")
        if not docker or subprocess.run([docker, "info"], capture_output=True).returncode != 0:
            self.skipTest("there is no Docker daemon")
        is_static = TARGET.os == "linux" and not elf.needs(BINARY).libraries
        context = self.folder / "context"
        context.mkdir()
        shutil.copy(BINARY, context / "plexus")
        name = f"plexus-test-{uuid.uuid4().hex}"
        options = ["--file", str(PACKAGING / "Dockerfile"), "--build-arg", "BINARY=plexus"]
        if not is_static:
            options += ["--build-arg", "BASE=debian:stable-slim"]

        def run(*command):
            return self.run_program(docker, *command)

        run("build", "--quiet", "--tag", name, *options, context)
        self.addCleanup(run, "image", "rm", "--force", name)
        said = run("run", "--rm", name, "--version").stdout
        self.assertEqual(said, f"plexus {version()}\n")
        data = f"--volume={name}:/data"
        self.addCleanup(run, "volume", "rm", "--force", name)
        # Without a token, it does not start.
        run("run", "--rm", data, name, "token", "add", "test")
        run("run", "--detach", "--name", name, data, "--health-interval=1s", name)
        self.addCleanup(run, "rm", "--force", name)
        self.assert_becomes_healthy(docker, name)
        run("stop", "--time", str(TIMEOUT), name)
        code = run("inspect", "--format", "{{.State.ExitCode}}", name).stdout.strip()
        self.assertEqual(code, "0", "SIGTERM ends it gracefully")

    def assert_becomes_healthy(self, docker, name):
        limit = ["--since", "0", "--until", str(int(time.time()) + TIMEOUT)]
        events = [docker, "events", "--filter", f"container={name}", *limit]
        with subprocess.Popen(events, stdout=subprocess.PIPE, text=True) as following:
            found = any("health_status: healthy" in line for line in following.stdout)
            following.terminate()
        self.assertTrue(found, "it did not become healthy")
