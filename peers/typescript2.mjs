// The TypeScript client 2.x, in either era.
// usage: typescript2.mjs legacy|auto|modern stdio|http|sse PROGRAM|URL

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { walk } from "./walk.mjs";

const [era, transport, target] = process.argv.slice(2);

const connection = {
  stdio: () => new StdioClientTransport({ command: target, args: ["--stdio"], stderr: "ignore" }),
  http: () => new StreamableHTTPClientTransport(new URL(target)),
  sse: () => new SSEClientTransport(new URL(target)),
}[transport]();

const client = new Client(
  { name: "typescript2", version: "1.0.0" },
  {
    capabilities: { elicitation: {}, sampling: {}, roots: { listChanged: true } },
    versionNegotiation: { mode: era === "modern" ? { pin: "2026-07-28" } : era },
  },
);

await walk({
  era,
  transport,
  client,
  async connect(handlers, inboxes) {
    for (const [method, handler] of Object.entries(handlers)) {
      client.setRequestHandler(method, handler);
    }
    client.setNotificationHandler("notifications/message", (message) => inboxes.log.push(message));
    client.setNotificationHandler("notifications/resources/updated", (message) => inboxes.updated.push(message));
    client.setNotificationHandler("notifications/tools/list_changed", (message) =>
      inboxes.toolsChanged.push(message),
    );
    await client.connect(connection);
  },
  revision: () => client.getNegotiatedProtocolVersion(),
  call: (name, args, { meta, ...options } = {}) =>
    client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, options),
  async subscribe(uri) {
    if (era === "legacy") {
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    }
    const subscription = await client.listen({ resourceSubscriptions: [uri], toolsListChanged: true });
    return async () => {
      await subscription.close();
      await subscription.closed;
    };
  },
  // This SDK reports the legacy -32002 under the code that 2026-07-28 gave it.
  notFound: -32602,
  serverProcess: () => connection.pid,
  async close() {
    if (era === "legacy") await connection.terminateSession?.();
    await client.close();
  },
});
process.exit(0);
