#!/usr/bin/env node
// Starts the program of this platform, which is in a package of its own.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { isatty } = require("node:tty");

const platform = `${process.platform}-${process.arch}`;

// On Linux, there is one program for glibc and one for musl. npm installs the one that fits; other
// installers may install both.
function programs() {
  return [platform, `${platform}-musl`].flatMap((name) => {
    try {
      return [require.resolve(`@plexus-mcp/${name}/bin/plexus`)];
    } catch {
      return [];
    }
  });
}

function program() {
  const found = programs();
  if (found.length < 2) {
    return found[0];
  }
  process.report.excludeNetwork = true;
  const hasGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
  return found[hasGlibc ? 0 : 1];
}

function fail(message) {
  console.error(`plexus-mcp: ${message}`);
  process.exit(1);
}

const path = program();
if (path === undefined) {
  fail(
    `the package @plexus-mcp/${platform} is missing: either there is no program for this ` +
      "platform, or optional dependencies were left out (npm install --include=optional)",
  );
}
const args = process.argv.slice(2);
if (typeof process.execve === "function") {
  // The program takes this process over, so there is nothing to forward, and no second process.
  process.execve(path, [path, ...args], process.env);
}

const child = spawn(path, args, { stdio: "inherit" });
child.on("error", (error) => fail(`cannot start ${path}: ${error.message}`));
child.on("exit", (code, signal) => {
  watcher.kill("SIGKILL");
  process.exit(signal === null ? code : 128 + constants.signals[signal]);
});

// A terminal sends these to both processes; a second one would end the program at once.
const atTerminal = [0, 1, 2].some(isatty);
for (const signal of ["SIGHUP", "SIGINT", "SIGQUIT"]) {
  process.on(signal, () => atTerminal || child.kill(signal));
}
process.on("SIGTERM", () => child.kill("SIGTERM"));

// A signal that cannot be caught ends this process only. So a shell waits on a pipe that is closed
// then, and ends the program.
const watcher = spawn("/bin/sh", ["-c", 'read -r _; kill "$1"', "sh", String(child.pid)], {
  detached: true,
  stdio: ["pipe", "ignore", "ignore"],
});
watcher.on("error", () => {});
