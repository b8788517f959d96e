use super::*;
use crate::secret::Secret;

fn source() -> Source {
    Source::new(Scope::Project, "/project/.mcp.json")
}

fn program(args: &[&str], env: &[(&str, &str)]) -> ServerEntry {
    let kind = Kind::Stdio {
        command: Text::literal("x"),
        args: args.iter().map(|arg| Text::literal(*arg)).collect(),
        env: env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::Known(Secret::new(*value))))
            .collect(),
        cwd: None,
    };
    ServerEntry::new("s", source(), kind)
}

fn endpoint(url: &str) -> ServerEntry {
    let kind = Kind::Http {
        url: Text::literal(url),
        headers: Vec::new(),
    };
    ServerEntry::new("s", source(), kind)
}

/// S004-53, S004-K072: every change of the connection changes the fingerprint, by which updates are
/// detected.
#[test]
fn connection_settings_change_the_fingerprint() {
    let mut serialized = program(&[], &[]);
    serialized.serialize = true;
    let mut timed = program(&[], &[]);
    timed.timeout = Some(Duration::from_secs(1));
    let mut legacy = program(&[], &[]);
    legacy.era = Some(Era::Handshake);
    let Kind::Http { url, headers } = endpoint("http://x").kind else {
        panic!()
    };
    let entries = [
        program(&[], &[]),
        program(&["a", "b"], &[]),
        program(&["ab"], &[]),
        program(&["a"], &[("b", "")]),
        program(&["a"], &[("b", "c")]),
        serialized,
        timed,
        legacy,
        endpoint("http://x"),
        endpoint("http://y"),
        ServerEntry::new("s", source(), Kind::Sse { url, headers }),
        ServerEntry::new("s", source(), Kind::Builtin("x".into())),
    ];
    let fingerprints: std::collections::HashSet<_> =
        entries.iter().map(ServerEntry::fingerprint).collect();
    assert_eq!(fingerprints.len(), entries.len());
}

/// S004-K072.
#[test]
fn other_settings_do_not_change_the_fingerprint() {
    let entry = program(&["a"], &[]);
    let mut other = ServerEntry::new("other", Source::new(Scope::User, "/x"), entry.kind.clone());
    other.disabled = true;
    other.trusted = true;
    other.auto_restart = false;
    other.startup_wait = Some(Duration::from_secs(1));
    other.tools = ToolFilter::new(vec!["x".into()], Vec::new()).unwrap();
    assert_eq!(entry.fingerprint(), other.fingerprint());
    assert_ne!(entry.approval(), other.approval());
}

#[test]
fn the_error_of_an_unsupported_entry_names_the_server() {
    for kind in [
        Kind::Builtin("health".into()),
        Kind::Unsupported("unsupported: because".into()),
    ] {
        let entry = ServerEntry::new("s", source(), kind);
        let problem = entry
            .definition(&FetchedSecrets::new(), &Limits::default())
            .unwrap_err();
        assert_eq!(problem.server.as_deref(), Some("s"));
    }
}
