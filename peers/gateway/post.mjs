// A minimal client over Streamable HTTP. It offers no capabilities, and ignores notifications.

import { HANDSHAKE, STATELESS, statelessMeta } from "./eras.mjs";

const PATIENCE = 30_000;

export class Post {
  #url;
  #era;
  #session;
  #lastId = 0;

  /** A client of the server at `url`. Its `era` is legacy or modern. */
  constructor(url, era = "legacy") {
    this.#url = url;
    this.#era = era;
  }

  /** Opens a session; in the modern era, discovers the server instead. */
  async open() {
    if (this.#era === "modern") {
      await this.request("server/discover");
      return;
    }
    const clientInfo = { name: "post", version: "1.0.0" };
    await this.request("initialize", { protocolVersion: HANDSHAKE, capabilities: {}, clientInfo });
    await this.#send({ method: "notifications/initialized" });
  }

  /** Sends a request, and waits for the result. */
  async request(method, params = {}) {
    const id = ++this.#lastId;
    const whole = this.#era === "modern" ? { ...params, _meta: statelessMeta("post") } : params;
    const messages = await this.#send({ id, method, params: whole });
    const answer = messages.find((message) => message.id === id && message.method === undefined);
    if (!answer?.result) throw new Error(`${method}: ${JSON.stringify(answer?.error ?? "no answer")}`);
    return answer.result;
  }

  /** Sends a message; returns the messages in the response. */
  async #send(message) {
    const response = await fetch(this.#url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...this.#headers(message),
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
      signal: AbortSignal.timeout(PATIENCE),
    });
    this.#session ??= response.headers.get("mcp-session-id");
    const body = await response.text();
    if (body === "") return [];
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return [JSON.parse(body)];
    // The first event of a stream may have no data, only an id to resume from.
    return [...body.matchAll(/^data: ?(\S.*)$/gm)].map(([, data]) => JSON.parse(data));
  }

  #headers({ method, params }) {
    if (this.#era === "modern") {
      const name = params?.name && { "mcp-name": params.name };
      return { "mcp-protocol-version": STATELESS, "mcp-method": method, ...name };
    }
    return this.#session ? { "mcp-protocol-version": HANDSHAKE, "mcp-session-id": this.#session } : {};
  }
}
