//! The `_meta` of a request: the members that the protocol defines.

use std::borrow::Cow;

use plexus_mcp_wire::{Id, Object, Raw};

use crate::fault::Fault;

/// Names of `_meta` members that the protocol defines.
pub mod key {
    /// Everything under this prefix belongs to the protocol and is re-stamped on every hop.
    pub const PREFIX: &str = "io.modelcontextprotocol/";
    /// The version a stateless request speaks.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The client capabilities of a stateless request.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The name and version of the client.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The lowest level of log messages that a stateless request asks for.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The name and version of the server.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Which `subscriptions/listen` a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Ties progress notifications to their request.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// Among a client's extensions: it knows tasks.
    pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
    /// W3C trace context.
    pub const TRACE_PARENT: &str = "traceparent";
}

/// The protocol's own members of a request's `_meta`, undecoded where a rule about them can fail.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct RequestMeta {
    /// Version of a stateless request. Its mere presence makes the request stateless.
    pub protocol_version: Option<Raw>,
    /// Client capabilities of a stateless request.
    pub client_capabilities: Option<Raw>,
    /// Client identity.
    pub client_info: Option<Raw>,
    /// Wanted log level of a stateless request.
    pub log_level: Option<Raw>,
    /// The token for progress notifications.
    pub progress_token: Option<Id>,
    /// The version that `initialize` requests. It is a parameter, not metadata.
    pub handshake_version: Option<String>,
}

impl RequestMeta {
    /// Reads `_meta` from a request's parameters. Without it they give the default.
    ///
    /// # Errors
    /// `_meta` that is not an object, duplicate keys, a progress token that is neither string nor
    /// integer (PROG-01).
    pub fn read(params: &Object) -> Result<Self, Fault> {
        let mut meta = match params.get("_meta") {
            Some(meta) => Self::of(meta)?,
            None => Self::default(),
        };
        meta.handshake_version = params.text("protocolVersion").map(Cow::into_owned);
        Ok(meta)
    }

    fn of(meta: &Raw) -> Result<Self, Fault> {
        let meta = Object::parse(meta)
            .map_err(|error| Fault::InvalidParams(format!("params._meta: {error}")))?;
        let invalid = |error| Fault::InvalidParams(format!("params._meta.progressToken: {error}"));
        let token = meta.get(key::PROGRESS_TOKEN);
        Ok(Self {
            protocol_version: meta.get(key::PROTOCOL_VERSION).cloned(),
            client_capabilities: meta.get(key::CLIENT_CAPABILITIES).cloned(),
            client_info: meta.get(key::CLIENT_INFO).cloned(),
            log_level: meta.get(key::LOG_LEVEL).cloned(),
            progress_token: token.map(Raw::decode).transpose().map_err(invalid)?,
            handshake_version: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(params: &str) -> Result<RequestMeta, Fault> {
        let params = Raw::parse(
            params.to_owned().into(),
            &plexus_mcp_wire::Limits::default(),
        )
        .unwrap();
        RequestMeta::read(&Object::parse(&params).unwrap())
    }

    #[test]
    fn reads_what_the_protocol_defines_and_leaves_the_rest() {
        let meta = read(
            r#"{"_meta":{"progressToken":7,"vendor/x":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"00-a-b-01"}}"#,
        )
        .unwrap();
        assert_eq!(meta.progress_token, Some(Id::from(7_i64)));
        assert_eq!(meta.protocol_version.unwrap().as_str(), r#""2026-07-28""#);
        assert_eq!(read("{}"), Ok(RequestMeta::default()));
    }

    /// PROG-01, META26-02.
    #[test]
    fn malformed_metadata_is_refused() {
        for params in [
            r#"{"_meta":3}"#,
            r#"{"_meta":{"progressToken":null}}"#,
            r#"{"_meta":{"progressToken":1.5}}"#,
            r#"{"_meta":{"a":1,"a":2}}"#,
        ] {
            assert!(
                matches!(read(params), Err(Fault::InvalidParams(_))),
                "{params}"
            );
        }
    }
}
