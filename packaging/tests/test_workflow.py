"""The workflow that makes a release: what it names must exist."""

import json
import os
import re
import subprocess
import unittest

from builders.common import ROOT, TARGETS, manifest

from .support import need

WORKFLOW = ROOT / ".github/workflows/release.yml"
# A reader of YAML that the conformance suites bring along.
MODULES = ROOT / ".tools/conformance/node_modules"


class WorkflowTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need("node")
        if not (MODULES / "yaml").exists():
            raise unittest.SkipTest("the node module yaml is missing: ./check setup")
        read = """
            const { parse } = require("yaml");
            const { readFileSync } = require("node:fs");
            console.log(JSON.stringify(parse(readFileSync(process.argv[1], "utf8"))));
        """
        environment = os.environ | {"NODE_PATH": str(MODULES)}
        command = ["node", "-e", read, str(WORKFLOW)]
        said = subprocess.run(command, check=True, capture_output=True, env=environment).stdout
        cls.jobs = json.loads(said)["jobs"]

    def steps(self):
        return [step for job in self.jobs.values() for step in job["steps"]]

    def test_every_target_is_built(self):
        built = [one["target"] for one in self.jobs["packages"]["strategy"]["matrix"]["include"]]
        self.assertEqual(built, list(TARGETS))

    def test_actions_are_pinned_by_their_commits(self):
        used = [step["uses"] for step in self.steps() if "uses" in step]
        self.assertTrue(used)
        for action in used:
            self.assertRegex(action, r"^[\w/-]+@[0-9a-f]{40}$")

    def test_scripts_that_are_run_exist(self):
        named = set()
        for step in self.steps():
            named |= set(re.findall(r"packaging/[\w.]+", step.get("run", "")))
        self.assertIn("packaging/build", named)
        for name in named:
            file = ROOT / name
            self.assertTrue(file.is_file(), name)
            self.assertTrue(file.name == "Dockerfile" or os.access(file, os.X_OK), name)

    def test_scripts_are_valid_shell(self):
        for step in self.steps():
            script = re.sub(r"\$\{\{.*?\}\}", "x", step.get("run", ""))
            subprocess.run(["bash", "-n"], input=script, text=True, check=True)

    def test_jobs_need_jobs_that_exist(self):
        for job in self.jobs.values():
            needs = job.get("needs", [])
            for name in [needs] if isinstance(needs, str) else needs:
                self.assertIn(name, self.jobs)

    def test_only_the_last_job_may_write(self):
        writing = [name for name, job in self.jobs.items() if "permissions" in job]
        self.assertEqual(writing, ["release"])

    def test_the_compiler_is_that_of_the_workspace(self):
        lines = (ROOT / "Cargo.toml").read_text().splitlines()
        self.assertIn(f'rust-version = "{manifest()["rust-version"]}"', lines)
