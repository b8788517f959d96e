// Every spelling of the name of a tool that a rule denies.

import assert from "node:assert/strict";

import { Client } from "../client.mjs";

const names = [
  "honest__forbidden",
  "mcp__honest__forbidden",
  "honest.forbidden",
  "honest/forbidden",
  "honest:forbidden",
  "forbidden",
  "Honest__forbidden",
  "HONEST__FORBIDDEN",
  "honest__Forbidden",
  " honest__forbidden",
  "honest__forbidden ",
  "honest__forbidden\n",
  "honest__forbidden\u0000",
  "honest__forb\u0456dden",
  "honest___forbidden",
  "honest__honest__forbidden",
  "honest__echo\u0000honest__forbidden",
  "../honest__forbidden",
  "mcp__plexus__honest__forbidden",
  "honest%5F%5Fforbidden",
];

/** Attacks the policy. */
export async function attack({ url, tokens }) {
  const hostile = { url, token: tokens.hostile };
  const modern = new Client(url, { token: hostile.token });
  const legacy = await new Client(url, { token: hostile.token, era: "legacy" }).open();
  for (const name of names) {
    for (const client of [modern, legacy]) {
      const headers = client === modern ? { "mcp-name": encoded(name) } : {};
      const { status, result } = await client.request("tools/call", { name, arguments: {} }, { headers });
      assert.ok(result === undefined || result.isError, `${JSON.stringify(name)} was executed (status ${status})`);
    }
  }
  // The header says one tool and the body another.
  for (const [header, name] of [["honest__echo", "honest__forbidden"], ["honest__forbidden", "honest__echo"]]) {
    const { status } = await modern.request("tools/call", { name, arguments: {} }, { headers: { "mcp-name": header } });
    assert.equal(status, 400, `${header} in the header, ${name} in the body`);
  }
  // A member that occurs twice.
  const twice = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"honest__echo","name":"honest__forbidden","arguments":{}}}';
  await legacy.send({}, { body: twice });
  await legacy.send({}, { body: twice.replace("honest__echo", "honest__forbidden").replace(/"honest__forbidden"(?=,"arguments)/, '"honest__echo"') });
  for (const tool of ["CallTool", "search__CallTool"]) {
    await legacy.request("tools/call", { name: tool, arguments: { name: "honest__forbidden", arguments: {} } });
  }
  // A rule that asks is not answered by its caller without a question.
  const { result } = await modern.request("tools/call", { name: "honest__guarded", arguments: {}, inputResponses: { q1: { action: "accept", content: { answer: "once" } } } });
  assert.ok(result === undefined || result.isError || result.resultType !== "complete", "a question that was never asked was answered");
  const counts = await modern.counts();
  assert.equal(counts.forbidden, 0, "the forbidden tool was executed");
  return `${names.length} spellings`;
}

/** A header value of any text, in the encoding of 2026-07-28. */
function encoded(text) {
  return /^[\x21-\x7e]*$/.test(text) ? text : `=?base64?${Buffer.from(text).toString("base64")}?=`;
}
