// Puts every server of servers.mjs behind `plexus bridge`, runs a client of only 2026-07-28 and a client of
// only 2024-11-05 against it, and prints one table.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { plexusProgram, target } from "../../conformance/fixture.mjs";
import { table } from "../../conformance/table.mjs";
import { visible } from "../servers/processes.mjs";
import { servers } from "../servers/servers.mjs";
import { eachOf, servePage } from "../servers/environment.mjs";
import { bridge, clients } from "./bridged.mjs";

const USAGE = `usage: peers/gateway/run [--plexus PROGRAM] [--visitor PROGRAM] [--only TEXT]

  --plexus PROGRAM    use this plexus instead of the one in target/debug
  --visitor PROGRAM   use this visit-gateway instead of the one in target/debug
  --only TEXT         take only the servers whose name contains TEXT, such as "python-2.3"`;

async function main() {
  const { values: options } = parseArgs({
    options: {
      plexus: { type: "string" },
      visitor: { type: "string", default: join(target, "debug", "visit-gateway") },
      only: { type: "string", default: "" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (options.help) {
    console.log(USAGE);
    return true;
  }
  const programs = { plexus: plexusProgram(options.plexus), visitor: resolve(options.visitor) };
  if (!existsSync(programs.visitor)) {
    throw new Error(`${programs.visitor} is missing: run ./check build`);
  }
  const names = servers({ folder: "", port: "", page: "" })
    .map(({ name }) => name)
    .filter((name) => name.includes(options.only));
  if (names.length === 0) {
    throw new Error(`no server is called "${options.only}"`);
  }
  if (!visible) {
    console.log("this system has no /proc: whether processes are left behind is not looked at");
  }

  const page = await servePage();
  const bridged = names.map((name) => ({ name, visits: {}, faults: [] }));
  await eachOf(bridged, async (entry) => {
    try {
      await bridge(programs, entry, page.url);
    } catch (error) {
      entry.faults.push(error.message);
    }
  });
  page.close();
  return report(bridged);
}

/** Prints the table and all faults; returns whether there are no faults. */
function report(bridged) {
  const revisions = Object.keys(clients);
  const rows = bridged.map(({ name, visits, faults }) => {
    const found = Object.values(visits).find(({ found }) => found)?.found ?? {};
    const outcomes = revisions.map((revision) => {
      const visit = visits[revision];
      return visit && visit.faults.length === 0 ? `${visit.seconds.toFixed(1)} s` : "FAILED";
    });
    const end = faults.length === 0 ? "clean" : "FAILED";
    return [name, found.tools ?? "", found.resources ?? "", found.prompts ?? "", ...outcomes, end];
  });
  console.log(table(["server", "tools", "resources", "prompts", ...revisions, "end"], rows));

  let passed = true;
  const tell = (where, fault) => {
    passed = false;
    console.log(`${where}: ${fault}`);
  };
  for (const { name, visits, faults } of bridged) {
    faults.forEach((fault) => tell(name, fault));
    for (const [revision, visit] of Object.entries(visits)) {
      visit.faults.forEach((fault) => tell(`${name} (${revision})`, fault));
    }
  }
  return passed;
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`peers/gateway/run: ${error.message}`);
  process.exitCode = 2;
}
