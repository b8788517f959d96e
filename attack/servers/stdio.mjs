// Messages on standard input and output, one JSON value a line.

import { createInterface } from "node:readline";

/** Calls `receive` with every message; the process ends with its input. */
export function lines(receive) {
  createInterface({ input: process.stdin })
    .on("line", (line) => receive(JSON.parse(line)))
    .on("close", () => process.exit(0));
  // The gateway may have closed the pipe.
  process.stdout.on("error", () => process.exit(0));
}

/** Sends a message. */
export function send(message) {
  write(`${JSON.stringify(message)}\n`);
}

/** Sends bytes that need not be a message. Returns whether more may be sent before the pipe drains. */
export function write(bytes) {
  return process.stdout.write(bytes);
}
