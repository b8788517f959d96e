// The MCP Inspector's command line against each profile of plexus, in either era (S002-44, S003-60).
// usage: profiles.mjs [PROGRAM]; without one, the plexus in target/debug is used

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { target } from "../conformance/fixture.mjs";
import { inspector } from "./inspect.mjs";
import { step } from "./steps.mjs";

const program = resolve(process.argv[2] ?? join(target, "debug", "plexus"));
const data = mkdtempSync(join(tmpdir(), "plexus-profiles-"));
process.on("exit", () => rmSync(data, { recursive: true, force: true }));

/** For each profile: a check of the listed names, a call, and a pattern for its result. */
const profiles = {
  ghost: {
    shows: (names) => assert.deepEqual(names, ["query_context"]),
    call: ["query_context", "query=authentication patterns"],
    says: /^Found \d+ relevant context nodes/,
  },
  bossman: {
    shows: (names) => assert.deepEqual([names.length, names[0]], [8, "create_task"]),
    call: ["create_task", "description=Fix parser bug"],
    says: /^\{"id":"task_\w+","description":"Fix parser bug","status":"pending"\}$/,
  },
  substrate: {
    shows: (names) => names.forEach((name) => assert.match(name, /^[a-z]+\.[a-z_]+$/)),
    call: ["echo.once", "message=hello"],
    says: /^hello$/,
  },
};

for (const [profile, { shows, call, says }] of Object.entries(profiles)) {
  for (const era of ["legacy", "modern"]) {
    const inspect = inspector(
      {
        command: program,
        args: ["serve", "--stdio", "--profile", profile],
        env: { PLEXUS_DATA_DIR: data },
      },
      era,
    );
    await step(`${profile} ${era}: list tools, strictly`, async () => {
      const { tools } = await inspect("--method", "tools/list", "--strict");
      shows(tools.map(({ name }) => name));
    });
    await step(`${profile} ${era}: call a tool`, async () => {
      const [name, argument] = call;
      const result = await inspect("--method", "tools/call", "--tool-name", name, "--tool-arg", argument);
      assert.notEqual(result.isError, true);
      assert.match(result.content[0].text, says);
    });
  }
}
