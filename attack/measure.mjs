// What a process and its descendants hold: memory, file descriptors, processes. Linux only.

import { readFileSync, readdirSync } from "node:fs";

/** Whether processes can be measured on this system. */
export const measurable = process.platform === "linux";

const MIB = 1024 * 1024;

/** The memory of the process in MiB, its file descriptors, and the number of its descendants. */
export function holdings(pid) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kibibytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  return {
    memory: (kibibytes * 1024) / MIB,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    processes: descendants(pid).length,
  };
}

/** The ids of the processes that the process started, and that those started. */
export function descendants(pid) {
  const children = new Map();
  for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const parent = parentOf(entry);
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const found = [];
  const open = [pid];
  while (open.length > 0) {
    const below = children.get(open.pop()) ?? [];
    found.push(...below);
    open.push(...below);
  }
  return found;
}

function parentOf(pid) {
  try {
    // The name in parentheses may contain anything.
    return Number(/.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]);
  } catch {
    // The process has ended.
    return undefined;
  }
}

/** Samples the holdings of a process, and keeps the largest. */
export class Watch {
  #timer;
  #last = { memory: 0, descriptors: 0, processes: 0 };

  constructor(pid, interval = 250) {
    this.pid = pid;
    this.peak = { memory: 0, descriptors: 0, processes: 0 };
    if (!measurable) return;
    this.sample();
    this.#timer = setInterval(() => this.sample(), interval);
    this.#timer.unref();
  }

  /** What the process holds now, or held when it ended. */
  sample() {
    try {
      this.#last = holdings(this.pid);
    } catch {
      // The process has ended, which another verdict is about.
    }
    for (const [key, value] of Object.entries(this.#last)) this.peak[key] = Math.max(this.peak[key], value);
    return this.#last;
  }

  stop() {
    clearInterval(this.#timer);
  }
}

/** The value below which `share` of the numbers lie. */
export function percentile(numbers, share) {
  if (numbers.length === 0) return Number.NaN;
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
