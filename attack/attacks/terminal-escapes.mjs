// Escape sequences of files and servers: none of them reaches a terminal.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";

import { Home, hostile } from "../gateway.mjs";

/** Runs a command on a terminal of its own. The exit code does not matter, only what is shown. */
const ON_A_TERMINAL = "import pty, sys; pty.spawn(sys.argv[1:], lambda fd: __import__('os').read(fd, 65536))";

/** A sequence of a file or a server: `hostile.mjs` ends each with this word. */
const SPOOFED = /[\u001b\u009b][^\n]{0,6}SPOOFED|[\u202e\u200b\u0007]/;

const commands = [
  ["mcp", "list"],
  ["mcp", "get", "escapes"],
  ["tools", "escapes"],
  ["tools"],
  ["call", "escapes__work"],
  ["call", "escapes\u001b]0;SPOOFED\u0007__work"],
  ["explain", "escapes__work"],
  ["doctor"],
  ["status"],
  ["probe", "node"],
];

/** Attacks the terminal of every command that shows texts of servers. */
export async function attack({ program }) {
  const home = new Home(program);
  try {
    const definition = hostile("escapes");
    const spoofed = "\u001b]0;SPOOFED\u0007 \u001b[2JSPOOFED \u202eSPOOFED";
    home.write(".mcp.json", JSON.stringify({ mcpServers: { escapes: definition, [`other${spoofed}`]: { command: `no${spoofed}`, args: [spoofed] } } }));
    for (const command of commands) {
      const words = command[0] === "probe" ? ["probe", "--", definition.command, ...definition.args] : command;
      const { stdout, error } = spawnSync("python3", ["-c", ON_A_TERMINAL, program, ...words], {
        cwd: join(home.folder),
        env: { ...home.env, TERM: "xterm-256color", COLUMNS: "200" },
        input: "",
        timeout: 60_000,
        encoding: "utf8",
      });
      assert.ifError(error);
      assert.ok(stdout.length > 0, `${command.join(" ")} shows nothing`);
      const found = SPOOFED.exec(stdout);
      assert.ok(found === null, `plexus ${command[0]} shows ${JSON.stringify(found && stdout.slice(Math.max(0, found.index - 40), found.index + 60))}`);
    }
    return `${commands.length} commands`;
  } finally {
    home.remove();
  }
}
