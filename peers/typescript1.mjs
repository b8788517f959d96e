// The TypeScript SDK 1.x, which knows the handshake era only.
// usage: typescript1.mjs legacy stdio|http|sse PROGRAM|URL

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { walk } from "./walk.mjs";

const [era, transport, target] = process.argv.slice(2);

const connection = {
  stdio: () => new StdioClientTransport({ command: target, args: ["--stdio"], stderr: "ignore" }),
  http: () => new StreamableHTTPClientTransport(new URL(target)),
  sse: () => new SSEClientTransport(new URL(target)),
}[transport]();

// The client of this SDK passes the negotiated revision to its transport, and has no getter for it.
let revision;
const tellTransport = connection.setProtocolVersion?.bind(connection);
connection.setProtocolVersion = (negotiated) => {
  revision = negotiated;
  tellTransport?.(negotiated);
};

const client = new Client(
  { name: "typescript1", version: "1.0.0" },
  { capabilities: { elicitation: {}, sampling: {}, roots: { listChanged: true } } },
);

await walk({
  era,
  transport,
  client,
  async connect(handlers, inboxes) {
    client.setRequestHandler(ElicitRequestSchema, handlers["elicitation/create"]);
    client.setRequestHandler(CreateMessageRequestSchema, handlers["sampling/createMessage"]);
    client.setRequestHandler(ListRootsRequestSchema, handlers["roots/list"]);
    client.setNotificationHandler(LoggingMessageNotificationSchema, (message) => inboxes.log.push(message));
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, (message) => inboxes.updated.push(message));
    client.setNotificationHandler(ToolListChangedNotificationSchema, (message) =>
      inboxes.toolsChanged.push(message),
    );
    await client.connect(connection);
  },
  revision: () => revision,
  call: (name, args, { meta, ...options } = {}) =>
    client.callTool({ name, arguments: args, _meta: meta }, undefined, options),
  async subscribe(uri) {
    await client.subscribeResource({ uri });
    return () => client.unsubscribeResource({ uri });
  },
  notFound: -32002,
  serverProcess: () => connection.pid,
  async close() {
    await connection.terminateSession?.();
    await client.close();
  },
});
process.exit(0);
