// Finds processes by a mark in their environment, which child processes inherit.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const VARIABLE = "PLEXUS_VISIT";
const LOOK_EVERY = 50;

/** Whether the system has /proc, by which processes are found. */
export const visible = existsSync("/proc/self/environ");

/** The variable that marks a process. */
export function marking(mark) {
  return { [VARIABLE]: mark };
}

/** The processes that carry the mark. */
export function marked(mark) {
  const variable = `${VARIABLE}=${mark}`;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((id) => read(`/proc/${id}/environ`).includes(variable))
    .map((id) => ({ id: Number(id), command: read(`/proc/${id}/cmdline`).join(" ").trim() }));
}

/** Waits until no process has the mark; returns those that have it after `limit` milliseconds. */
async function leftBehind(mark, limit) {
  const end = performance.now() + limit;
  for (;;) {
    const left = marked(mark);
    if (left.length === 0 || performance.now() > end) return left;
    await pause(LOOK_EVERY);
  }
}

/** Like `leftBehind`, but kills the remaining processes, and returns a fault for each. */
export async function clear(mark, limit) {
  if (!visible) return [];
  const left = await leftBehind(mark, limit);
  left.forEach(({ id }) => kill(id));
  return left.map(({ id, command }) => `left behind: ${id} ${command}`);
}

function kill(id) {
  try {
    process.kill(id, "SIGKILL");
  } catch (error) {
    // It may have ended meanwhile.
    if (error.code !== "ESRCH") throw error;
  }
}

/** The parts of a /proc file; none if the process has ended or belongs to another user. */
function read(file) {
  try {
    return readFileSync(file, "utf8").split("\0");
  } catch {
    return [];
  }
}
