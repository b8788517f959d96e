// Starts child processes, and kills them when this process exits or gets SIGINT or SIGTERM.

import { spawn } from "node:child_process";

const running = new Set();

/** Starts a program. If it still runs when this process exits, it is killed. */
export function start(program, args, options = {}) {
  const child = spawn(program, args, options);
  running.add(child);
  child.once("exit", () => running.delete(child));
  child.once("error", () => running.delete(child));
  return child;
}

/** Waits for a child to exit; resolves to its exit code, or to the signal that ended it. */
export function ended(child) {
  if (child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve(child.exitCode ?? child.signalCode);
  }
  return new Promise((resolve, reject) => {
    child.once("exit", (code, signal) => resolve(code ?? signal));
    child.once("error", reject);
  });
}

/** Resolves like `promise`, or to undefined once `milliseconds` have passed. */
export function within(milliseconds, promise) {
  let timer;
  const timeout = new Promise((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}

process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));
process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));
