// The one tool of the echo servers, which both TypeScript SDKs take in the same form.

import { z } from "zod";

/** Registers the tool, and returns the server. */
export function addEcho(server) {
  server.registerTool(
    "echo",
    { description: "Says what it is told", inputSchema: z.object({ text: z.string() }) },
    ({ text }) => ({ content: [{ type: "text", text: `echo: ${text}` }] }),
  );
  return server;
}
