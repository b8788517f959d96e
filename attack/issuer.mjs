// An authorization server for the attacks: its metadata, its keys, and an introspection endpoint.

import { createSign, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";

/** A key pair for ES256, as a JSON Web Key and as a private key. */
export function keyPair(kid) {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { kid, privateKey, publicKey, jwk: { ...publicKey.export({ format: "jwk" }), kid, alg: "ES256", use: "sig" } };
}

const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A token with this header and these claims, signed with the key. */
export function signed({ privateKey, kid }, claims, header = {}) {
  const text = `${part({ alg: "ES256", typ: "at+jwt", kid, ...header })}.${part(claims)}`;
  const signature = createSign("sha256").update(text).sign({ key: privateKey, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
}

/** A token with this header and these claims, and any signature. */
export function unsigned(claims, header, signature = "") {
  return `${part(header)}.${part(claims)}.${signature}`;
}

/** Starts the issuer with one key. `active` are the tokens that introspection knows, with their claims. */
export async function startIssuer({ key = keyPair("first"), active = new Map(), delay = 0 } = {}) {
  const counts = { keys: 0, introspections: 0, concurrent: 0, mostConcurrent: 0 };
  // It can be changed while the issuer runs.
  const pace = { delay };
  let url;
  const answers = {
    "/keys": () => {
      counts.keys += 1;
      return { keys: [key.jwk] };
    },
    "/introspect": async (body) => {
      counts.introspections += 1;
      counts.concurrent += 1;
      counts.mostConcurrent = Math.max(counts.mostConcurrent, counts.concurrent);
      await new Promise((resolve) => setTimeout(resolve, pace.delay));
      counts.concurrent -= 1;
      const claims = active.get(new URLSearchParams(body).get("token"));
      return claims ? { active: true, ...claims } : { active: false };
    },
  };
  const metadata = () => ({
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/keys`,
    introspection_endpoint: `${url}/introspect`,
    response_types_supported: ["code"],
    code_challenge_methods_supported: ["S256"],
  });
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const answer = request.url.startsWith("/.well-known/") ? metadata : answers[request.url];
    if (answer === undefined) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(await answer(body)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${server.address().port}`;
  return { url, key, counts, pace, close: () => server.close().closeAllConnections() };
}
