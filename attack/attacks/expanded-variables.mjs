// The value of a variable in the command of a server is not shown: not in the status, not in logs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { withGateway } from "../gateway.mjs";

const SECRET = "hunter2-in-a-path";

/** Attacks a gateway of its own. */
export function attack({ program }) {
  const mcpServers = { secret: { command: "${ATTACK_SECRET}/server", args: ["--token", "${ATTACK_SECRET}"] } };
  const options = { mcpServers, env: { ATTACK_SECRET: `/nowhere/${SECRET}` }, args: ["--log-level", "debug"] };
  return withGateway(program, options, async ({ home, gateway }) => {
    home.write(".mcp.json", JSON.stringify({ mcpServers }));
    for (const command of [["status"], ["status", "--json"], ["doctor"], ["doctor", "--json"], ["mcp", "list"], ["mcp", "get", "secret"], ["tools", "secret"]]) {
      const shown = home.shown(...command);
      assert.ok(!shown.includes(SECRET), `plexus ${command.join(" ")} shows it: ${shown.slice(0, 500)}`);
    }
    assert.ok(!readFileSync(gateway.log, "utf8").includes(SECRET), "it is in the log");
  });
}
