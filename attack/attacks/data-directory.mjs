// The data directory is private, whichever command makes it.

import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";

import { Home } from "../gateway.mjs";

const commands = [
  ["token", "add", "laptop"],
  ["token", "list"],
  ["task", "add", "something"],
  ["memory", "store", "key", "text"],
  ["tools"],
  ["call", "echo_ping"],
  ["trust", "--yes"],
  ["status"],
  ["servers", "disable", "x"],
  ["auth", "list"],
];

/** Runs each command in a home of its own, with a umask that gives everything to others. */
export async function attack({ program }) {
  const before = process.umask(0);
  try {
    let made = 0;
    for (const command of commands) made += inspect(program, (home) => run(home, command), command.join(" "));
    const home = new Home(program);
    const gateway = await home.serve();
    made += inspected(home, "serve");
    assert.deepEqual(await gateway.stop(), []);
    home.remove();
    assert.ok(made >= 4, `only ${made} commands made the directory`);
    return `${made} commands made it`;
  } finally {
    process.umask(before);
  }
}

function inspect(program, work, name) {
  const home = new Home(program);
  try {
    work(home);
    return inspected(home, name);
  } finally {
    home.remove();
  }
}

/** Checks the directory if it exists; returns 1 if it does. */
function inspected(home, name) {
  if (!existsSync(home.data)) return 0;
  const mode = statSync(home.data).mode & 0o777;
  assert.equal(mode, 0o700, `plexus ${name} made the directory with mode ${mode.toString(8)}`);
  return 1;
}

function run(home, command) {
  try {
    home.run(...command);
  } catch {
    // Some commands have nothing to do in an empty home.
  }
}
