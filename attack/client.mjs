// An MCP client over Streamable HTTP that shows what happened, instead of judging it.

import { HANDSHAKE, STATELESS, statelessMeta } from "../peers/gateway/eras.mjs";

const PATIENCE = 60_000;

export class Client {
  #lastId = 0;

  /** A client of the endpoint at `url`. */
  constructor(url, { token, era = "modern", revision = HANDSHAKE, capabilities = {}, patience = PATIENCE } = {}) {
    Object.assign(this, { url, token, era, revision, capabilities, patience, session: undefined });
  }

  /** Opens a session of the handshake era. */
  async open() {
    const clientInfo = { name: "attack", version: "1.0.0" };
    const params = { protocolVersion: this.revision, capabilities: this.capabilities, clientInfo };
    const answer = await this.send(this.message("initialize", params));
    if (answer.status !== 200) throw new Error(`initialize: status ${answer.status}, ${answer.body}`);
    this.session = answer.headers.get("mcp-session-id");
    await this.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    return this;
  }

  /** A request with an id of its own. */
  message(method, params = {}) {
    const id = (this.#lastId += 1);
    return { jsonrpc: "2.0", id, method, params: this.era === "modern" ? { ...params, _meta: { ...this.#meta(), ...params._meta } } : params };
  }

  /** Sends a request; returns its status, all messages in the response, and the one that answers it. */
  async request(method, params, options) {
    const message = this.message(method, params);
    const answer = await this.send(message, options);
    const answers = answer.messages.filter(({ id, method }) => id === message.id && method === undefined);
    return { ...answer, answers, result: answers[0]?.result, error: answers[0]?.error };
  }

  /** Calls a tool of the honest server; returns its text, or throws with the answer. */
  async text(name, args = {}) {
    const { status, result, body } = await this.request("tools/call", { name, arguments: args });
    const text = result?.content?.[0]?.text;
    if (text === undefined || result.isError) throw new Error(`${name}: status ${status}, ${body.slice(0, 500)}`);
    return text;
  }

  /** The counts of the honest server. */
  async counts() {
    return JSON.parse(await this.text("honest__counts"));
  }

  /** Sends anything; `body` replaces the JSON text. */
  async send(message, { headers = {}, body, signal, token = this.token } = {}) {
    const limit = AbortSignal.timeout(this.patience);
    const response = await fetch(this.url, {
      method: "POST",
      headers: { ...this.#headers(message, token), ...headers },
      body: body ?? JSON.stringify(message),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      redirect: "manual",
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text, messages: messages(response, text) };
  }

  /** Opens the event stream of the session; resolves to the response, whose body is a stream. */
  stream({ headers = {}, signal, token = this.token } = {}) {
    const own = this.#headers({}, token);
    delete own["content-type"];
    return fetch(this.url, { headers: { ...own, accept: "text/event-stream", ...headers }, signal });
  }

  #meta() {
    return { ...statelessMeta("attack"), "io.modelcontextprotocol/clientCapabilities": this.capabilities };
  }

  #headers({ method, params }, token) {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    if (token) headers.authorization = `Bearer ${token}`;
    if (this.era === "modern") {
      headers["mcp-protocol-version"] = STATELESS;
      if (method) headers["mcp-method"] = method;
      if (params?.name) headers["mcp-name"] = params.name;
    } else if (this.session) {
      headers["mcp-protocol-version"] = this.revision;
      headers["mcp-session-id"] = this.session;
    }
    return headers;
  }
}

/** The JSON-RPC messages in the body of a response. */
function messages(response, text) {
  try {
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) return events(text);
    return text === "" ? [] : [JSON.parse(text)].flat();
  } catch {
    return [];
  }
}

/** The messages in the text of an event stream. */
export function events(text) {
  // A batch of 2025-03-26 is one event.
  return [...text.matchAll(/^data: ?(\S.*)$/gm)].flatMap(([, data]) => JSON.parse(data));
}

/** Whether `/health` of the gateway answers 200, and after how many milliseconds. */
export async function health(url, limit) {
  const began = performance.now();
  try {
    const response = await fetch(new URL("/health", url), { signal: AbortSignal.timeout(limit) });
    await response.text();
    return { answered: response.status === 200, milliseconds: performance.now() - began };
  } catch {
    return { answered: false, milliseconds: performance.now() - began };
  }
}

