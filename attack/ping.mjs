// Pings a gateway in a session for some time, in a process of its own, so that its times are not those
// of an attack.
//
// The parent sends { url, token } first, which is answered when the session is open, then
// { milliseconds }, which is answered with the time of each ping and the first status that is not 200.

import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "./client.mjs";

const PAUSE = 10;

const [{ url, token }] = await once(process, "message");
const client = await new Client(url, { token, era: "legacy" }).open();
// The first request compiles this program.
await client.request("ping");
process.send({});

const [{ milliseconds }] = await once(process, "message");
const times = [];
let refused;
const end = Date.now() + milliseconds;
while (Date.now() < end && refused === undefined) {
  const began = performance.now();
  const { status } = await client.request("ping");
  if (status !== 200) refused = status;
  times.push(performance.now() - began);
  await sleep(PAUSE);
}
process.send({ times, refused }, () => process.disconnect());
