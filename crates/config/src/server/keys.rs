//! The keys of a server's definition that Plexus reads.

/// A key of a server's definition, as `docs/configuration.md` describes it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ServerKey {
    /// Its name. A member of an object is named after it: `oauth.clientId`.
    pub name: &'static str,
    /// The servers that it is for.
    pub servers: KeyServers,
    /// The values that it may have.
    pub value: KeyValue,
    /// The default: JSON, or a description in words.
    pub default: KeyDefault,
    /// An example, as JSON.
    pub example: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

/// The servers that a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a server is a program or has an address"
)]
pub enum KeyServers {
    /// Servers with a `command`.
    Programs,
    /// Servers with a `url`.
    Addresses,
    /// All servers.
    All,
}

/// The values that a key may have.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum KeyValue {
    /// A string.
    Text,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A list of strings.
    Texts,
    /// An object with a string or a reference to a secret for each name.
    Values,
    /// A string or a reference to a secret.
    Secret,
    /// A number of seconds, from this one to an hour.
    Seconds(f64),
    /// A whole number of milliseconds, at least 1.
    Milliseconds,
    /// A port.
    Port,
}

/// The default of a key.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum KeyDefault {
    /// There is none, the key is required.
    Required,
    /// This value, as JSON.
    Json(&'static str),
    /// This description.
    Words(&'static str),
}

/// All keys of a server's definition that Plexus reads, in the order of the page.
pub const SERVER_KEYS: &[ServerKey] = &{
    use KeyDefault::{Json, Required, Words};
    use KeyServers::{Addresses, All, Programs};
    use KeyValue::{Flag, Milliseconds, OneOf, Port, Seconds, Secret, Text, Texts, Values};
    [
        key(
            "command",
            Programs,
            Text,
            Required,
            r#""mcp-server-git""#,
            "The program.",
        ),
        key(
            "args",
            Programs,
            Texts,
            Json("[]"),
            r#"["--repository", "."]"#,
            "Its arguments.",
        ),
        key(
            "env",
            Programs,
            Values,
            Json("{}"),
            r#"{"API_KEY": "${API_KEY}"}"#,
            "Environment variables, in addition to those of Plexus.",
        ),
        key(
            "env_file",
            Programs,
            Text,
            Words("none"),
            r#"".env""#,
            "A `.env` file with more of them. `env` has precedence.",
        ),
        key(
            "cwd",
            Programs,
            Text,
            Words("that of Plexus"),
            r#""~/work""#,
            "The working directory.",
        ),
        key(
            "url",
            Addresses,
            Text,
            Required,
            r#""https://reports.example.com/mcp""#,
            "The MCP endpoint.",
        ),
        key(
            "headers",
            Addresses,
            Values,
            Json("{}"),
            r#"{"Authorization": "Bearer ${API_KEY}"}"#,
            "Headers of every request.",
        ),
        key(
            "account",
            Addresses,
            Text,
            Words("none"),
            r#""work""#,
            "The account to sign in with, if there are several: that of `plexus auth login --account`.",
        ),
        key(
            "identity",
            Addresses,
            OneOf(&["shared", "user", "exchange", "forward"]),
            Json(r#""shared""#),
            r#""user""#,
            "Whose tokens calls have.",
        ),
        key(
            "audience",
            Addresses,
            Text,
            Words("none; required with `forward`"),
            r#""reports""#,
            "The name of the server at the authorization server. Only with the identities `exchange` and `forward`.",
        ),
        key(
            "type",
            All,
            OneOf(&[
                "stdio",
                "http",
                "streamable-http",
                "streamableHttp",
                "sse",
                "sdk",
                "claudeai-proxy",
            ]),
            Words("follows from `command` or `url`"),
            r#""stdio""#,
            "The kind of server. With `http`, HTTP+SSE is tried if the server does not speak Streamable HTTP; `streamable-http` and `streamableHttp` mean the same. `sdk` is for servers inside of an agent and `claudeai-proxy` for connectors of claude.ai: both are accepted and not started.",
        ),
        key(
            "name",
            All,
            Text,
            Words("that of the server"),
            r#""tasks""#,
            "The name of a server of the type `sdk`.",
        ),
        key(
            "disabled",
            All,
            Flag,
            Json("false"),
            "true",
            "Do not start or list the server.",
        ),
        key(
            "allow",
            All,
            Texts,
            Json("[]"),
            r#"["git_*"]"#,
            "Globs over the server's own tool names. If there are any, only matching tools are shown.",
        ),
        key(
            "deny",
            All,
            Texts,
            Json("[]"),
            r#"["*_delete"]"#,
            "Globs over the server's own tool names. Matching tools are not shown.",
        ),
        key(
            "auto_restart",
            All,
            Flag,
            Json("true"),
            "false",
            "Reconnect the server after it fails or is lost. A session that a server over HTTP has lost is renewed in any case.",
        ),
        key(
            "startup_timeout",
            All,
            Seconds(0.001),
            Words("`connect_timeout_seconds` of `[limits]`"),
            "90",
            "How long the handshake of the server may take. Its lists then have the same time again.",
        ),
        key(
            "startup_wait",
            All,
            Seconds(0.0),
            Words("`startup_wait` of `[hub]`"),
            "20",
            "How long lists wait for the server while it is not cached; `0` for not at all.",
        ),
        key(
            "timeout_ms",
            All,
            Milliseconds,
            Words("`call_timeout_seconds` of `[limits]`"),
            "1800000",
            "How long a tool call may run without a response, a progress notification or a question.",
        ),
        key(
            "serialize",
            All,
            Flag,
            Json("false"),
            "true",
            "Send calls one after the other, for servers that cannot handle several at a time. A call whose question is open is still running, so the next one waits for its answer.",
        ),
        key(
            "era",
            All,
            OneOf(&["legacy", "modern"]),
            Words("detected"),
            r#""legacy""#,
            "The era in which Plexus speaks to the server: `legacy` (2024-11-05 to 2025-11-25) or `modern` (2026-07-28).",
        ),
        key(
            "affinity",
            All,
            OneOf(&["shared", "principal"]),
            Words("`shared` for a program, `principal` for an address"),
            r#""principal""#,
            "Which callers share a session with a server of the legacy era: all, or those of one principal with the same capabilities. With `principal`, a program is started once for each of them; one that keeps ending without having answered a call is started again after 0.5 s, and after up to 1 min if that repeats.",
        ),
        key(
            "roots",
            All,
            OneOf(&["prime"]),
            Words("asked when the server asks"),
            r#""prime""#,
            "`prime` asks each client for its roots before its first call, for servers that request the roots outside of any call.",
        ),
        key(
            "trusted",
            All,
            Flag,
            Json("false"),
            "true",
            "Believe the server's annotations that a tool is read-only or harmless.",
        ),
        key(
            "oauth.clientId",
            Addresses,
            Text,
            Words("registered automatically, if the authorization server supports it"),
            r#""gateway""#,
            "The client id at the authorization server.",
        ),
        key(
            "oauth.clientSecret",
            Addresses,
            Secret,
            Words("none"),
            r#""${CLIENT_SECRET}""#,
            "The secret of the client.",
        ),
        key(
            "oauth.privateKey",
            Addresses,
            Secret,
            Words("none"),
            r#"{"command": ["cat", "key.pem"]}"#,
            "Instead of a secret, the private key in PEM with which the client authenticates.",
        ),
        key(
            "oauth.algorithm",
            Addresses,
            Text,
            Json(r#""ES256""#),
            r#""RS256""#,
            "The signature algorithm of `privateKey`.",
        ),
        key(
            "oauth.keyId",
            Addresses,
            Text,
            Words("none"),
            r#""2026-07""#,
            "The id of `privateKey` at the authorization server.",
        ),
        key(
            "oauth.issuer",
            Addresses,
            Text,
            Words("discovered; required with the identity `exchange`"),
            r#""https://login.example.com""#,
            "The authorization server at which the client is registered. If the server names another, it is not used.",
        ),
        key(
            "oauth.callbackPort",
            Addresses,
            Port,
            Words("any free port"),
            "8123",
            "The port of the redirect.",
        ),
        key(
            "oauth.grant",
            Addresses,
            OneOf(&["user", "client_credentials", "workload", "enterprise"]),
            Json(r#""user""#),
            r#""client_credentials""#,
            "How tokens are obtained: a user signs in, or without a user.",
        ),
        key(
            "oauth.assertion",
            Addresses,
            Secret,
            Words("required with the grant `workload`"),
            r#"{"command": ["cat", "/var/run/token"]}"#,
            "A JWT of the platform for this workload (RFC 7523). It is fetched each time it is needed.",
        ),
        key(
            "oauth.idToken",
            Addresses,
            Secret,
            Words("required with the grant `enterprise`"),
            r#"{"command": ["idp", "id-token"]}"#,
            "The ID token of the user's sign-in to the enterprise. It is fetched each time it is needed.",
        ),
        key(
            "oauth.idpTokenEndpoint",
            Addresses,
            Text,
            Words("required with the grant `enterprise`"),
            r#""https://idp.example.com/token""#,
            "The token endpoint of the enterprise, at which the ID token is exchanged (ID-JAG).",
        ),
        key(
            "oauth.idpClientId",
            Addresses,
            Text,
            Words("required with the grant `enterprise`"),
            r#""plexus""#,
            "The client id at that endpoint.",
        ),
    ]
};

const fn key(
    name: &'static str,
    servers: KeyServers,
    value: KeyValue,
    default: KeyDefault,
    example: &'static str,
    meaning: &'static str,
) -> ServerKey {
    ServerKey {
        name,
        servers,
        value,
        default,
        example,
        meaning,
    }
}

/// Whether a member of a definition, or an object in it, is a key in [`SERVER_KEYS`].
pub(super) fn is_known(name: &str) -> bool {
    SERVER_KEYS.iter().any(|key| {
        let object = key.name.split_once('.').map(|(object, _)| object);
        key.name == name || object == Some(name)
    })
}
