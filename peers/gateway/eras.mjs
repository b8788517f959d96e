// The revision that the minimal clients speak in each era.

/** The newest revision of the legacy era, which begins with `initialize`. */
export const HANDSHAKE = "2025-11-25";

/** The revision of the modern era, in which every request says what the client is. */
export const STATELESS = "2026-07-28";

/** The `_meta` of a request of the modern era, of a client called `name`. */
export function statelessMeta(name) {
  const key = (member) => `io.modelcontextprotocol/${member}`;
  return {
    [key("protocolVersion")]: STATELESS,
    [key("clientCapabilities")]: {},
    [key("clientInfo")]: { name, version: "1.0.0" },
  };
}
