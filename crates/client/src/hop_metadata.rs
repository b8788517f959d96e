//! Hop-by-hop metadata: the `_meta` keys and HTTP headers that each request to a server must carry,
//! and those of the caller's hop that it must not.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue};
use plexus_mcp_protocol::header::{self, HeaderParams, encode_value};
use plexus_mcp_protocol::messages::{ClientCapabilities, LogLevel};
use plexus_mcp_protocol::{Revision, key, method};
use plexus_mcp_wire::{Object, Raw};

use crate::link::{Headers, Number};

/// The protocol version of a connection or of a stateless request.
pub(crate) const PROTOCOL_VERSION_HEADER: HeaderName =
    HeaderName::from_static(header::PROTOCOL_VERSION);
const METHOD_HEADER: HeaderName = HeaderName::from_static(header::METHOD);
const NAME_HEADER: HeaderName = HeaderName::from_static(header::NAME);

/// The metadata of a stateless request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatelessMeta<'a> {
    pub(crate) revision: Revision,
    pub(crate) capabilities: &'a ClientCapabilities,
    pub(crate) client_info: &'a Raw,
    pub(crate) log_level: Option<LogLevel>,
}

/// Parameters as they are sent to a server.
#[derive(Debug)]
pub(crate) struct ParamsWithMeta<'a> {
    /// Without `_meta`.
    pub(crate) params: Cow<'a, Object>,
    /// What `_meta` holds, if there is one.
    pub(crate) meta: Option<Raw>,
}

/// A `_meta` with nothing but our progress token.
#[derive(serde::Serialize)]
struct Token {
    #[serde(rename = "progressToken")]
    number: Number,
}

/// A `_meta` with nothing but what every stateless request carries.
#[derive(serde::Serialize)]
struct Meta<'a> {
    #[serde(rename = "progressToken", skip_serializing_if = "Option::is_none")]
    token: Option<Number>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: &'a str,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: &'a Raw,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    client_info: &'a Raw,
    #[serde(
        rename = "io.modelcontextprotocol/logLevel",
        skip_serializing_if = "Option::is_none"
    )]
    log_level: Option<LogLevel>,
}

/// Parameters for a handshake-era server: without the caller's hop metadata, and with our progress
/// token if there is one (TRANSLATION §5.2). All other members are kept.
///
/// Plexus does not support tasks, so the `task` member is removed: the caller gets a plain call,
/// because a task as the answer would not be a tool result.
pub(crate) fn handshake<'a>(
    method: &str,
    params: &'a Object,
    token: Option<Number>,
) -> ParamsWithMeta<'a> {
    let mut params = Cow::Borrowed(params);
    without(&mut params, "inputResponses");
    without(&mut params, "requestState");
    if method == method::TOOLS_CALL {
        without(&mut params, "task");
    }
    let meta = match (taken_meta(&mut params), token) {
        (Some(mut meta), token) => {
            if let Some(token) = token {
                meta.set(key::PROGRESS_TOKEN, json(&token));
            }
            (!meta.is_empty()).then(|| meta.to_raw())
        }
        (None, token) => token.map(|number| json(&Token { number })),
    };
    ParamsWithMeta { params, meta }
}

/// Parameters for a stateless server.
pub(crate) fn stateless<'a>(
    params: &'a Object,
    token: Option<Number>,
    own: StatelessMeta<'_>,
) -> ParamsWithMeta<'a> {
    let mut params = Cow::Borrowed(params);
    let others = taken_meta(&mut params).filter(|others| !others.is_empty());
    let meta = match others {
        None => json(&Meta {
            token,
            version: own.revision.as_str(),
            capabilities: own.capabilities.raw(),
            client_info: own.client_info,
            log_level: own.log_level,
        }),
        Some(mut meta) => {
            if let Some(token) = token {
                meta.set(key::PROGRESS_TOKEN, json(&token));
            }
            meta.set(key::PROTOCOL_VERSION, Raw::string(own.revision.as_str()));
            meta.set(key::CLIENT_CAPABILITIES, own.capabilities.raw().clone());
            meta.set(key::CLIENT_INFO, own.client_info.clone());
            if let Some(level) = own.log_level {
                meta.set(key::LOG_LEVEL, json(&level));
            }
            meta.to_raw()
        }
    };
    let meta = Some(meta);
    ParamsWithMeta { params, meta }
}

impl ParamsWithMeta<'_> {
    /// The parameters as one value.
    pub(crate) fn to_raw(&self) -> Raw {
        let mut params = Object::clone(&self.params);
        if let Some(meta) = &self.meta {
            params.set("_meta", meta.clone());
        }
        params.to_raw()
    }
}

/// A stateless result without its hop metadata.
pub(crate) fn without_hop_metadata(mut result: Object) -> Raw {
    result.remove("resultType");
    without_reserved_meta(&mut result);
    result.to_raw()
}

/// The same for a handshake-era result: a server must not set `_meta` keys that are reserved for
/// the protocol.
pub(crate) fn without_legacy_hop_metadata(result: Raw) -> Raw {
    if !result.as_str().contains(key::PREFIX) {
        return result;
    }
    let Ok(mut object) = Object::parse(&result) else {
        return result;
    };
    without_reserved_meta(&mut object);
    object.to_raw()
}

fn without_reserved_meta(result: &mut Object) {
    let meta = result.remove("_meta").map(|meta| cleaned(&meta));
    if let Some(meta) = meta.filter(|meta| !meta.is_empty()) {
        result.set("_meta", meta.to_raw());
    }
}

/// Removes a member. `params` are copied only if it is present.
fn without(params: &mut Cow<'_, Object>, name: &str) -> Option<Raw> {
    params
        .contains(name)
        .then(|| params.to_mut().remove(name))?
}

/// Removes `_meta` from the parameters, and returns it without hop metadata.
fn taken_meta(params: &mut Cow<'_, Object>) -> Option<Object> {
    without(params, "_meta").map(|meta| cleaned(&meta))
}

/// The headers that mirror a stateless request (HDR26-01, HDR26-03, HDR26-09).
pub(crate) fn mirrored_headers(
    revision: Revision,
    method: &str,
    params: &Object,
    tool_headers: Option<&HeaderParams>,
) -> Headers {
    let version = HeaderValue::from_static(revision.as_str());
    let mut headers = vec![(PROTOCOL_VERSION_HEADER, version)];
    put(&mut headers, METHOD_HEADER, method);
    if let Some(member) = method::name_member(method)
        && let Some(name) = params.text(member)
    {
        put(&mut headers, NAME_HEADER, &encode_value(&name));
    }
    if let Some(tool_headers) = tool_headers {
        for (name, value) in tool_headers.values(params.get("arguments")) {
            if let Ok(name) = HeaderName::try_from(name) {
                put(&mut headers, name, &value);
            }
        }
    }
    headers
}

fn put(headers: &mut Headers, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.push((name, value));
    }
}

/// `_meta` without hop metadata.
fn cleaned(meta: &Raw) -> Object {
    let mut meta = Object::parse(meta).unwrap_or_default();
    meta.retain(|name| !name.starts_with(key::PREFIX) && name != key::PROGRESS_TOKEN);
    meta
}

/// Encodes a value that always has a JSON form.
pub(crate) fn json<T: serde::Serialize + ?Sized>(value: &T) -> Raw {
    Raw::encode(value).unwrap_or_else(|_| Raw::null())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned().into(), &plexus_mcp_wire::Limits::default()).unwrap()
    }

    fn object(text: &str) -> Object {
        Object::parse(&raw(text)).unwrap()
    }

    /// TRANSLATION §5.2: the hop's own keys go, trace and vendor keys stay, the rest is verbatim.
    #[test]
    fn legacy_parameters_lose_only_what_belongs_to_the_hop() {
        let params = object(
            r#"{"name":"t","arguments":{"big":12345678901234567890},"requestState":"s","inputResponses":{},"task":{"ttl":1},"unknown":[1],
               "_meta":{"progressToken":"theirs","traceparent":"00-a","vendor/x":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
        );
        let sent = handshake("tools/call", &params, Some(7));
        assert_eq!(
            sent.to_raw().as_str(),
            r#"{"name":"t","arguments":{"big":12345678901234567890},"unknown":[1],"_meta":{"traceparent":"00-a","vendor/x":1,"progressToken":7}}"#
        );
        assert_eq!(
            handshake("vendor/do", &object(r#"{"task":1}"#), None)
                .to_raw()
                .as_str(),
            r#"{"task":1}"#
        );
        assert_eq!(
            handshake("ping", &Object::new(), None).to_raw().as_str(),
            "{}"
        );
        assert_eq!(
            handshake("ping", &Object::new(), Some(1)).to_raw().as_str(),
            r#"{"_meta":{"progressToken":1}}"#
        );
    }

    /// META26-01, META26-03, VER26-01, and what was there stays.
    #[test]
    fn stateless_parameters_carry_our_own_metadata() {
        let own = StatelessMeta {
            revision: Revision::V2026_07_28,
            capabilities: &ClientCapabilities::none(),
            client_info: &raw(r#"{"name":"us","version":"1"}"#),
            log_level: Some(LogLevel::Info),
        };
        let params = object(r#"{"uri":"a://b","_meta":{"k":1}}"#);
        let sent = stateless(&params, None, own);
        assert_eq!(
            sent.to_raw().as_str(),
            r#"{"uri":"a://b","_meta":{"k":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"us","version":"1"},"io.modelcontextprotocol/logLevel":"info"}}"#
        );
        let params = object(
            r#"{"uri":"a://b","_meta":{"progressToken":"theirs","io.modelcontextprotocol/clientInfo":{}}}"#,
        );
        let sent = stateless(&params, Some(7), own);
        assert_eq!(
            sent.to_raw().as_str(),
            r#"{"uri":"a://b","_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"us","version":"1"},"io.modelcontextprotocol/logLevel":"info"}}"#
        );
    }

    /// HDR26-01, HDR26-03, HDR26-04, HDR26-12.
    #[test]
    fn headers_mirror_the_body() {
        let schema = raw(
            r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}"#,
        );
        let of_tool = HeaderParams::from_input_schema(&schema).unwrap();
        let params = object(r#"{"name":"grüße","arguments":{"region":"eu","n":null}}"#);
        let headers =
            mirrored_headers(Revision::V2026_07_28, "tools/call", &params, Some(&of_tool));
        let headers: http::HeaderMap = headers.into_iter().collect();
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(text("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(text("mcp-method"), Some("tools/call"));
        assert_eq!(text("mcp-name"), Some("=?base64?Z3LDvMOfZQ==?="));
        assert_eq!(text("mcp-param-region"), Some("eu"));
        assert_eq!(text("mcp-param-n"), None);
    }
}
