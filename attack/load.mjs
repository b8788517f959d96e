// Ordinary load of a well-behaved principal, whose answers are counted.
//
// The parent sends { url, token } first. Then { next: true } ends a phase and begins another, and
// { end: true } ends the load. Both are answered with the counts of the phase that ended.

import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "./client.mjs";
import { percentile } from "./measure.mjs";

/** Each worker makes one call at a time, with this pause after it: about a hundred calls a second in all. */
const WORKERS = 4;
const PAUSE = 35;

let counts = empty();
let ending = false;
let nonce = 0;

function empty() {
  return { sent: 0, answered: 0, lost: 0, duplicated: 0, mismatched: 0, times: [], faults: [] };
}

async function work({ url, token }, worker) {
  const client = new Client(url, { token, era: worker % 2 === 0 ? "modern" : "legacy" });
  if (client.era === "legacy") await client.open();
  while (!ending) {
    await call(client, `${process.pid}-${(nonce += 1)}`);
    await sleep(PAUSE);
  }
}

/** One call. The counts are those of the phase in which it began. */
async function call(client, value) {
  const mine = counts;
  mine.sent += 1;
  const began = performance.now();
  try {
    const { answers, result, status, body } = await client.request("tools/call", { name: "honest__echo", arguments: { nonce: value } });
    if (answers.length === 0) {
      lose(mine, `status ${status}: ${body.slice(0, 200)}`);
      return;
    }
    mine.times.push(performance.now() - began);
    mine.answered += 1;
    if (answers.length > 1) mine.duplicated += 1;
    if (result?.content?.[0]?.text !== value) {
      mine.mismatched += 1;
      note(mine, `mismatched: ${body.slice(0, 200)}`);
    }
  } catch (error) {
    lose(mine, `${error.message} ${error.cause?.message ?? ""}`);
  }
}

function lose(mine, fault) {
  mine.lost += 1;
  note(mine, fault);
}

function note(mine, fault) {
  if (mine.faults.length < 5) mine.faults.push(fault);
}

function report({ times, ...rest }) {
  return { ...rest, p50: percentile(times, 0.5), p99: percentile(times, 0.99), worst: Math.max(0, ...times) };
}

let workers;

process.on("message", async (message) => {
  if (message.url) {
    workers = Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(message, worker)));
    return;
  }
  if (message.end) {
    ending = true;
    await workers;
    process.send(report(counts), () => process.disconnect());
    return;
  }
  const before = counts;
  counts = empty();
  // Calls of the phase that ended may still run.
  while (before.sent > before.answered + before.lost) await sleep(10);
  process.send(report(before));
});
