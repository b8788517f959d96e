// Visits every server of servers.mjs through the client edge, and prints one table. A stdio server is
// visited once for each way in which a visit can end.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { target } from "../../conformance/fixture.mjs";
import { table } from "../../conformance/table.mjs";
import { visible } from "./processes.mjs";
import { servers } from "./servers.mjs";
import { eachOf, servePage } from "./environment.mjs";
import { endings, visit } from "./visit.mjs";

const USAGE = `usage: peers/servers/run [--visitor PROGRAM] [--only TEXT]

  --visitor PROGRAM   use this visit-server instead of the one in target/debug
  --only TEXT         visit only the servers whose name contains TEXT, such as "python-2.3"`;

async function main() {
  const { values: options } = parseArgs({
    options: {
      visitor: { type: "string", default: join(target, "debug", "visit-server") },
      only: { type: "string", default: "" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const visitor = resolve(options.visitor);
  if (!existsSync(visitor)) {
    throw new Error(`${visitor} is missing: run ./check build`);
  }
  const chosen = servers({ folder: "", port: "", page: "" }).filter(({ name }) => name.includes(options.only));
  if (chosen.length === 0) {
    throw new Error(`no server is called "${options.only}"`);
  }
  if (!visible) {
    console.log("this system has no /proc: whether processes are left behind is not looked at");
  }

  const page = await servePage();
  const visits = chosen.flatMap(({ name, stdio }) =>
    // The visitor does not stop a server that listens, so only one way of ending is tested.
    Object.keys(endings)
      .filter((ending) => stdio || ending === "by itself")
      .map((ending) => ({ name, ending })),
  );
  await eachOf(visits, async (planned) => {
    const began = performance.now();
    try {
      Object.assign(planned, await visit(visitor, planned.name, planned.ending, page.url));
    } catch (error) {
      planned.faults = [error.message];
    }
    planned.seconds = (performance.now() - began) / 1000;
  });
  page.close();
  return report(chosen, visits);
}

/** Prints the table and all faults; returns whether there are no faults. */
function report(chosen, visits) {
  const rows = chosen.map(({ name }) => {
    const own = visits.filter((visit) => visit.name === name);
    const { revision, tools, resources, prompts } = own[0].found ?? {};
    const outcomes = Object.keys(endings).map((ending) => {
      const visit = own.find((visit) => visit.ending === ending);
      if (!visit) return "";
      return visit.faults.length > 0 ? "FAILED" : `${visit.seconds.toFixed(1)} s`;
    });
    return [name, revision ?? "", tools ?? "", resources ?? "", prompts ?? "", ...outcomes];
  });
  console.log(table(["server", "revision", "tools", "resources", "prompts", ...Object.keys(endings)], rows));
  for (const { name, ending, faults } of visits) {
    faults.forEach((fault) => console.log(`${name} (${ending}): ${fault}`));
  }
  return visits.every(({ faults }) => faults.length === 0);
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`peers/servers/run: ${error.message}`);
  process.exitCode = 2;
}
