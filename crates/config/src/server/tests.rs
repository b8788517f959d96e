use std::path::PathBuf;

use plexus_mcp_client::{Affinity, Target};

use super::*;
use crate::entry::Scope;
use crate::secret::{FetchedSecrets, MASK, SecretSource};
use crate::settings::Limits;
use crate::sign_in::Grant;

fn parsed(definition: &str) -> Result<ServerEntry, ConfigProblem> {
    let raw = Raw::parse(definition.to_owned().into(), &json::LIMITS).unwrap();
    let source = Source::new(Scope::Project, "/project/.mcp.json");
    let context = ReadContext {
        source: &source,
        base: Path::new("/project"),
        environment: &|name| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "TOKEN" => Some("hunter2".to_owned()),
            _ => None,
        },
        read: &|file| match file.to_str() {
            Some("/project/.env") => Ok(Some("A='from file'\nB=hunter3\n".to_owned())),
            Some("/project/bad.env") => Ok(Some("A=1\nhunter3\n".to_owned())),
            Some("/project/dir") => Err(ConfigProblem::new(file, "this is a directory")),
            _ => Ok(None),
        },
    };
    read("s", &raw, &context)
}

fn server(definition: &str) -> ServerEntry {
    parsed(definition).unwrap()
}

/// The text of the problem, without the file.
fn problem(definition: &str) -> String {
    let line = parsed(definition).unwrap_err().to_string();
    assert_eq!(line.lines().count(), 1, "{line}");
    let rest = line.strip_prefix("/project/.mcp.json: server \"s\": ");
    rest.unwrap_or_else(|| panic!("{line}")).to_owned()
}

fn env(entry: &ServerEntry) -> Vec<(&str, &str)> {
    let Kind::Stdio { env, .. } = &entry.kind else {
        panic!("{entry:?}")
    };
    env.iter()
        .map(|(name, value)| match value {
            Value::Known(value) => (name.as_str(), value.expose()),
            Value::Fetched { .. } => panic!("{name} is not known"),
        })
        .collect()
}

/// S000-27, S001-26, S004-K105
#[test]
fn a_program_has_arguments_environment_and_directory() {
    let entry = server(
        r#"{"type":"stdio","command":"~/bin/x","args":["--token","${TOKEN}"],"env":{"A":"${TOKEN}!","PORT":8080},"cwd":"tools"}"#,
    );
    let definition = entry
        .definition(&FetchedSecrets::new(), &Limits::default())
        .unwrap();
    let Target::Stdio(program) = definition.target else {
        panic!()
    };
    assert_eq!(program.command, "/home/ada/bin/x");
    assert_eq!(program.args, ["--token", "hunter2"]);
    assert_eq!(program.env["A"].as_deref(), Some("hunter2!"));
    assert_eq!(program.env["PORT"].as_deref(), Some("8080"));
    assert_eq!(program.cwd, Some(PathBuf::from("/project/tools")));
}

/// S004-19, S004-68, S004-69, C22, C23, S001-57, S004-04, S004-K106
#[test]
fn the_kind_is_inferred_or_said() {
    let cases = [
        (r#"{"command":"x"}"#, "stdio"),
        (r#"{"url":"http://x/mcp"}"#, "http"),
        (r#"{"type":"http","url":"https://x"}"#, "http"),
        (r#"{"type":"streamable-http","url":"https://x"}"#, "http"),
        (r#"{"type":"sse","url":"https://x"}"#, "sse"),
        (r#"{"type":"sdk","name":"health"}"#, "sdk"),
        (
            r#"{"type":"claudeai-proxy","url":"https://x","id":"1"}"#,
            "unsupported",
        ),
        (
            r#"{"type":"stdio","command":"x","url":"https://x"}"#,
            "stdio",
        ),
        (r#"{"type":null,"command":"x","url":null}"#, "stdio"),
    ];
    for (definition, kind) in cases {
        assert_eq!(server(definition).kind.name(), kind, "{definition}");
    }
    assert_eq!(server(r#"{"type":"sdk"}"#).kind, Kind::Builtin("s".into()));
}

/// C23: all keys of an entry are read, and unknown keys are kept.
#[test]
fn options_are_read_and_unknown_keys_kept() {
    let entry = server(
        r#"{"command":"x","disabled":true,"timeout_ms":1500,"serialize":true,"trusted":true,"auto_restart":false,"startup_timeout":60,"startup_wait":0.5,"era":"legacy","affinity":"shared","roots":"prime","allow":["get_*"],"deny":["*_all"],"future":{"a":1.50},"name":"kept"}"#,
    );
    assert!(entry.disabled && entry.serialize && entry.trusted && !entry.auto_restart);
    assert_eq!(entry.startup_wait, Some(Duration::from_millis(500)));
    assert_eq!(entry.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(entry.era, Some(Era::Handshake));
    assert!(entry.tools.admits("get_one") && !entry.tools.admits("get_all"));
    let kept: Vec<_> = entry
        .other
        .iter()
        .map(|(key, raw)| (key, raw.as_str()))
        .collect();
    assert_eq!(kept, [("future", r#"{"a":1.50}"#), ("name", "\"kept\"")]);

    let definition = entry
        .definition(&FetchedSecrets::new(), &Limits::default())
        .unwrap();
    assert_eq!(definition.timeouts.call, Duration::from_millis(1500));
    assert_eq!(definition.era, Some(Era::Handshake));
    assert_eq!(definition.timeouts.connect, Duration::from_mins(1));
    assert!(definition.prime_roots);
    assert_eq!(entry.affinity, Some(Affinity::Shared));
    assert!(definition.serialize);
}

#[test]
fn everything_optional_has_a_default() {
    let entry = server(r#"{"command":"x"}"#);
    assert!(!entry.disabled && !entry.serialize && !entry.trusted && entry.auto_restart);
    assert_eq!((entry.startup_timeout, entry.startup_wait), (None, None));
    assert_eq!((entry.timeout, entry.era), (None, None));
    assert!(entry.tools.admits("anything") && entry.other.is_empty());
}

/// S004-43
#[test]
fn headers_go_with_every_request() {
    let entry = server(r#"{"url":"http://x/mcp","headers":{"Authorization":"Bearer ${TOKEN}"}}"#);
    let definition = entry
        .definition(&FetchedSecrets::new(), &Limits::default())
        .unwrap();
    let Target::Http(target) = definition.target else {
        panic!()
    };
    assert_eq!(target.headers["authorization"], "Bearer hunter2");
    assert!(target.headers["authorization"].is_sensitive());
}

#[test]
fn secrets_are_fetched_when_the_server_is_connected() {
    let entry = server(
        r#"{"url":"http://x","headers":{"A":{"command":["pass","${TOKEN}"],"prefix":"Bearer "},"B":{"keyring":{"service":"s","account":"a"}}}}"#,
    );
    let sources: Vec<_> = entry.secret_sources().cloned().collect();
    let pass = SecretSource::Command {
        command: "pass".into(),
        args: vec!["hunter2".into()],
    };
    let keyring = SecretSource::Keyring {
        service: "s".into(),
        account: "a".into(),
    };
    assert_eq!(sources, [pass.clone(), keyring.clone()]);

    let mut fetched = FetchedSecrets::from([(pass, Secret::new("one"))]);
    let missing = entry.definition(&fetched, &Limits::default()).unwrap_err();
    assert_eq!(missing.key.as_deref(), Some("headers.B"));
    fetched.insert(keyring.clone(), Secret::new("two"));
    let Target::Http(target) = entry
        .definition(&fetched, &Limits::default())
        .unwrap()
        .target
    else {
        panic!()
    };
    assert_eq!(target.headers["a"], "Bearer one");
    assert_eq!(target.headers["b"], "two");

    fetched.insert(keyring, Secret::new("hunter\n2"));
    let unfit = entry
        .definition(&fetched, &Limits::default())
        .unwrap_err()
        .to_string();
    assert!(
        unfit.contains("headers.B") && !unfit.contains("hunter"),
        "{unfit}"
    );
}

#[test]
fn an_environment_file_sets_what_the_entry_does_not() {
    let entry = server(
        r#"{"command":"x","args":["${B}"],"env_file":".env","env":{"A":"own","C":"${B}","TOKEN":"${TOKEN}"}}"#,
    );
    let expected = [
        ("A", "own"),
        ("C", "hunter3"),
        ("TOKEN", "hunter2"),
        ("B", "hunter3"),
    ];
    assert_eq!(env(&entry), expected);
    let entry = server(r#"{"url":"http://x","env_file":".env","headers":{"K":"${B}"}}"#);
    assert!(
        entry
            .definition(&FetchedSecrets::new(), &Limits::default())
            .is_ok()
    );
}

/// Each problem is one line that names the key, and never a value.
#[test]
fn problems_name_the_key() {
    let cases = [
        (r"[]", "an object is expected, not a list"),
        (
            r#"{"command":"x","command":"y"}"#,
            "duplicate key \"command\"",
        ),
        (r"{}", "command: there is neither a command nor a url"),
        (r#"{"command":"x","url":"y"}"#, "type: there are both"),
        (
            r#"{"type":"ws","url":"y"}"#,
            "type: \"ws\" is unknown; use stdio",
        ),
        (r#"{"type":1}"#, "type: a string is expected, not a number"),
        (r#"{"type":"stdio"}"#, "command: it is missing"),
        (r#"{"type":"sse"}"#, "url: it is missing"),
        (
            r#"{"command":["npx"]}"#,
            "command: a string is expected, not a list",
        ),
        (r#"{"command":" "}"#, "command: it is empty"),
        (
            r#"{"command":"x","args":"y"}"#,
            "args: a list of strings is expected",
        ),
        (
            r#"{"command":"x","args":[1]}"#,
            "args: a list of strings is expected",
        ),
        (
            r#"{"command":"x","args":["a","${NONE}"]}"#,
            "args[1]: the environment variable NONE is not set; set it, or write ${NONE:-default}",
        ),
        (
            r#"{"command":"x","env":[]}"#,
            "env: an object is expected, not a list",
        ),
        (
            r#"{"command":"x","env":{"A":"${NONE}"}}"#,
            "env.A: the environment variable NONE",
        ),
        (
            r#"{"command":"x","env":{"A":[]}}"#,
            "env.A: a string or a reference",
        ),
        (
            r#"{"command":"x","env":{"A":{"cmd":[]}}}"#,
            "env.A: not a reference to a secret; write {",
        ),
        (
            r#"{"command":"x","env":{"A":{"command":[]}}}"#,
            "env.A: not a reference to a secret",
        ),
        (
            r#"{"command":"x","env":{"A=B":"y"}}"#,
            "env.A=B: the system cannot hold",
        ),
        (
            r#"{"command":"x","env":{"A":"${input:key}"}}"#,
            "env.A: ${input:key} is a question",
        ),
        (r#"{"command":"x","cwd":1}"#, "cwd: a string is expected"),
        (r#"{"command":"x","timeout_ms":0}"#, "timeout_ms: it is 0"),
        (
            r#"{"command":"x","timeout_ms":-1}"#,
            "timeout_ms: a whole number",
        ),
        (
            r#"{"command":"x","disabled":"yes"}"#,
            "disabled: true or false is expected, not a string",
        ),
        (r#"{"command":"x","era":"new"}"#, "era: \"new\" is unknown"),
        (
            r#"{"command":"x","affinity":"mine"}"#,
            "affinity: \"mine\" is unknown",
        ),
        (
            r#"{"command":"x","roots":"all"}"#,
            "roots: \"all\" is unknown",
        ),
        (r#"{"command":"x","allow":["["]}"#, "allow: "),
        (r#"{"command":"x","deny":["["]}"#, "deny: "),
        (
            r#"{"command":"x","env_file":"none"}"#,
            "env_file: /project/none: there is no such file",
        ),
        (
            r#"{"command":"x","env_file":"dir"}"#,
            "env_file: /project/dir: this is a directory",
        ),
        (
            r#"{"command":"x","env_file":"bad.env"}"#,
            "env_file: /project/bad.env:2: this is not NAME=value, or the value needs quotes",
        ),
        (
            r#"{"url":"ftp://x"}"#,
            "url: not an http:// or https:// URL",
        ),
        (r#"{"url":"localhost:80"}"#, "url: not an http://"),
        (r#"{"url":"http://hunter2 x"}"#, "url: not an http://"),
        (
            r#"{"url":"http://x","headers":{"a b":"c"}}"#,
            "headers.a b: not the name of a header",
        ),
        (
            r#"{"url":"http://x","headers":{"a":"hunter2\n"}}"#,
            "headers.a: the value holds",
        ),
    ];
    for (definition, start) in cases {
        let shown = problem(definition);
        assert!(shown.contains(start), "{definition}: {shown}");
        assert!(!shown.contains("hunter"), "{definition}: {shown}");
    }
}

#[test]
fn no_secret_is_shown() {
    let definitions = [
        r#"{"command":"x","args":["${TOKEN}","--key","sekret"],"env":{"A":"sekret"},"other":"sekret","env_file":".env"}"#,
        r#"{"url":"http://sekret@x/?k=${TOKEN}&l=sekret","headers":{"A":"sekret","B":{"command":["sekret-tool","sekret"]}}}"#,
    ];
    for definition in definitions {
        let entry = server(definition);
        let shown = format!(
            "{entry:?} {:?} {}",
            entry.kind,
            entry.shown().to_raw().as_str()
        );
        for secret in ["hunter", "sekret"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(shown.contains(MASK), "{shown}");
    }
}

/// CC-01, EMA-01: the keys of a definition for signing in, including those of other clients.
/// Secrets are masked.
#[test]
fn a_definition_says_how_to_sign_in() {
    let web = |more: &str| server(&format!(r#"{{"url":"https://x","oauth":{{{more}}}}}"#)).sign_in;
    let page = web(r#""clientId":"abc","callbackPort":8080,"xaa":true"#);
    assert_eq!(page.client_id.as_deref(), Some("abc"));
    assert_eq!(page.callback_port, Some(8080));
    assert_eq!(page.grant, Grant::User);

    let alone = web(r#""grant":"client_credentials","clientId":"abc","clientSecret":"${TOKEN}""#);
    assert_eq!(alone.grant, Grant::ClientCredentials);
    assert_eq!(
        alone.client_secret,
        Some(Value::Known(Secret::new("hunter2")))
    );
    assert!(!alone.needs_programs());
    let key = r#""privateKey":{"command":["cat","key.pem"]},"keyId":"k""#;
    let by_key = web(&format!(
        r#""grant":"client_credentials","clientId":"abc",{key},"issuer":"https://as""#
    ));
    let private_key = by_key.private_key.as_ref().unwrap();
    assert_eq!(private_key.algorithm, "ES256");
    assert!(by_key.needs_programs());
    let workload = web(r#""grant":"workload","clientId":"abc","assertion":"${TOKEN}""#);
    assert!(matches!(workload.grant, Grant::Workload { .. }));
    let enterprise = web(
        r#""grant":"enterprise","clientId":"abc","idToken":"${TOKEN}","idpClientId":"i","idpTokenEndpoint":"https://idp/token""#,
    );
    assert!(matches!(enterprise.grant, Grant::Enterprise { .. }));
    let entry = server(
        r#"{"url":"https://x","account":"work","identity":"exchange","oauth":{"clientId":"abc","clientSecret":"${TOKEN}","issuer":"https://as"}}"#,
    );
    let shown = format!("{entry:?}");
    assert!(
        !shown.contains("hunter2") && shown.contains(MASK),
        "{shown}"
    );
    assert!(
        shown.contains("exchange") && shown.contains("https://as"),
        "{shown}"
    );
    assert_eq!(entry.sign_in.account.as_deref(), Some("work"));
}

/// Every key for signing in is part of the fingerprint.
#[test]
fn signing_in_is_part_of_the_connection() {
    let definitions = [
        r#"{"url":"https://x"}"#,
        r#"{"url":"https://x","account":"work"}"#,
        r#"{"url":"https://x","identity":"user"}"#,
        r#"{"url":"https://x","identity":"forward","audience":"a"}"#,
        r#"{"url":"https://x","oauth":{"clientId":"a"}}"#,
        r#"{"url":"https://x","oauth":{"clientId":"a","clientSecret":"b"}}"#,
        r#"{"url":"https://x","oauth":{"clientId":"a","clientSecret":"${TOKEN}"}}"#,
    ];
    let prints: std::collections::HashSet<_> = definitions
        .iter()
        .map(|definition| server(definition).fingerprint())
        .collect();
    assert_eq!(prints.len(), definitions.len());
}

#[test]
fn invalid_sign_in_settings_are_reported() {
    let web = |more: &str| problem(&format!(r#"{{"url":"https://x",{more}}}"#));
    for (written, told) in [
        (r#""identity":"other""#, "shared, user, exchange or forward"),
        (r#""identity":"forward""#, "audience"),
        (r#""audience":"a""#, "no effect"),
        (
            r#""identity":"exchange","oauth":{"issuer":"https://as"}"#,
            "oauth.clientId",
        ),
        (
            r#""identity":"exchange","oauth":{"clientId":"a"}"#,
            "oauth.issuer",
        ),
        (r#""oauth":7"#, "an object is expected"),
        (r#""oauth":{"grant":"magic"}"#, "client_credentials"),
        (
            r#""oauth":{"grant":"client_credentials"}"#,
            "oauth.clientId",
        ),
        (
            r#""oauth":{"grant":"client_credentials","clientId":"a"}"#,
            "oauth.clientSecret",
        ),
        (
            r#""oauth":{"grant":"workload","clientId":"a"}"#,
            "oauth.assertion",
        ),
        (
            r#""oauth":{"grant":"enterprise","clientId":"a"}"#,
            "oauth.idpTokenEndpoint",
        ),
        (r#""oauth":{"callbackPort":0}"#, "from 1 to 65535"),
        (r#""oauth":{"callbackPort":70000}"#, "from 1 to 65535"),
    ] {
        let line = web(written);
        assert!(line.contains(told), "{written}: {line}");
    }
    let program = problem(r#"{"command":"x","identity":"user"}"#);
    assert!(program.contains("only remote servers"), "{program}");
}
