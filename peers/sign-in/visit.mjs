// Tests the sign-in of a TypeScript client: a request without a token is refused, the user opens a page,
// the client exchanges the code for a token, and requests with the token are accepted.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

const REDIRECT = "http://127.0.0.1:8976/callback";

/** The OAuth client provider: the state that the SDK stores in its application, and the page to open. */
export class Memory {
  redirectUrl = REDIRECT;
  clientMetadata = {
    client_name: "a peer",
    redirect_uris: [REDIRECT],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  #state = randomUUID();
  #verifier;
  #client;
  #tokens;

  state = () => this.#state;
  clientInformation = () => this.#client;
  saveClientInformation = (client) => void (this.#client = client);
  tokens = () => this.#tokens;
  saveTokens = (tokens) => void (this.#tokens = tokens);
  codeVerifier = () => this.#verifier;
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier);
  redirectToAuthorization = (page) => void (this.page = page);

  /** Opens the page as a user who consents; returns the query parameters of the redirect. */
  async agree() {
    const answer = await fetch(this.page, { redirect: "manual" });
    const back = new URL(answer.headers.get("location"));
    assert.equal(back.searchParams.get("state"), this.#state);
    assert.ok(back.searchParams.get("code"), `no code in ${back}`);
    return back.searchParams;
  }
}

/** Visits a gateway. `connect` returns a client and its transport, which use `memory` as their provider. */
export async function visit({ url, memory, connect, finish, isRefusal, call }) {
  await step("a stranger is told where to sign in", async () => {
    const refused = await fetch(url, { method: url.endsWith("/sse") ? "GET" : "POST" });
    assert.equal(refused.status, 401);
    assert.match(refused.headers.get("www-authenticate"), /resource_metadata="http:.*scope="mcp"|scope="mcp".*resource_metadata="http:/);
  });
  await step("the client is sent to the page", async () => {
    const { client, transport } = connect(memory);
    await assert.rejects(client.connect(transport), isRefusal);
    assert.equal(memory.page.searchParams.get("scope"), "mcp");
    await finish(transport, await memory.agree());
    await client.close();
  });
  for (const time of ["first", "second"]) {
    await step(`with its token it is let in for the ${time} time`, async () => {
      const { client, transport } = connect(memory);
      await client.connect(transport);
      const { tools } = await client.listTools();
      assert.ok(tools.some(({ name }) => name === "echo_ping"));
      const { content } = await call(client, "echo_ping", {});
      assert.equal(content[0].text, "pong");
      await client.close();
    });
  }
  await step("with another token it is not", async () => {
    const thief = new Memory();
    thief.saveTokens({ access_token: "made.up.token", token_type: "Bearer" });
    const { client, transport } = connect(thief);
    await assert.rejects(client.connect(transport), isRefusal);
    await client.close();
  });
  process.exit(0);
}

async function step(name, body) {
  try {
    await body();
  } catch (error) {
    console.log(`FAILED ${name}: ${error.stack}`);
    process.exit(1);
  }
  console.log(`ok ${name}`);
}
