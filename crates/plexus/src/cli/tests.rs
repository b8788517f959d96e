use super::*;

fn read(line: &str) -> Result<Command, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())?.into_command()
}

fn serve(line: &str) -> ServeArgs {
    match read(line) {
        Ok(Command::Serve(arguments)) => arguments,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

/// S000-07.
#[test]
fn http_is_served_unless_only_stdio_is_asked_for() {
    let cases = [
        ("plexus serve", false, Some("127.0.0.1:4445")),
        ("plexus serve --sse", false, Some("127.0.0.1:4445")),
        ("plexus serve --stdio", true, None),
        ("plexus serve --http [::1]:0", false, Some("[::1]:0")),
        (
            "plexus serve --stdio --http 127.0.0.1:80",
            true,
            Some("127.0.0.1:80"),
        ),
    ];
    for (line, stdio, http) in cases {
        let arguments = serve(line);
        assert_eq!(arguments.downstream.stdio, stdio, "{line}");
        let address = arguments
            .downstream
            .address()
            .map(|address| address.to_string());
        assert_eq!(address.as_deref(), http, "{line}");
    }
}

/// S003-59: the founding documents' spelling.
#[test]
fn stdio_mcp_is_serve_stdio() {
    let arguments = serve("plexus --stdio --mcp");
    assert!(arguments.downstream.stdio && arguments.downstream.address().is_none());
}

/// S003-58
#[test]
fn the_native_protocol_is_refused_with_a_way_out() {
    let error = read("plexus --stdio").unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let text = error.to_string();
    assert!(
        text.contains("not offered yet") && text.contains("plexus --stdio --mcp"),
        "{text}"
    );
}

/// S003-37.
#[test]
fn what_http_options_say_is_served() {
    let options = serve(
        "plexus serve --sse --path /plexus --allow-host a.example --allow-host b.example:81 \
         --allow-origin https://c.example",
    )
    .downstream
    .http_options();
    assert_eq!(options.path, "/plexus");
    assert_eq!(options.sse, Some(SsePaths::default()));
    let hosts: Vec<_> = options.allowed_hosts.iter().map(Host::to_string).collect();
    assert_eq!(hosts, ["a.example", "b.example:81"]);
    let origins: Vec<_> = options
        .allowed_origins
        .iter()
        .map(Origin::to_string)
        .collect();
    assert_eq!(origins, ["https://c.example"]);

    let options = serve("plexus serve").downstream.http_options();
    assert_eq!((options.path.as_str(), options.sse), ("/mcp", None));
}

/// C11: each profile shows the names that its clients take.
#[test]
fn profiles_name_tools() {
    use plexus_activations::Names;

    assert_eq!(serve("plexus serve").profile.names(), Names::Underscored);
    let substrate = serve("plexus serve --profile substrate");
    assert_eq!(substrate.profile.names(), Names::Dotted);
    let validator = serve("plexus serve --profile mcp-validator");
    assert_eq!(validator.profile.names(), Names::Underscored);
}

#[test]
fn misuse_is_told_apart_and_explained() {
    let cases = [
        ("plexus", "plexus serve --stdio"),
        ("plexus --mcp", "--stdio"),
        ("plexus --stdio serve", "plexus serve --stdio"),
        ("plexus serve --http 4445", "127.0.0.1:4445"),
        ("plexus serve --http localhost:4445", "127.0.0.1:4445"),
        ("plexus serve --path mcp", "/mcp"),
        ("plexus serve --path /mcp?x", "/mcp"),
        ("plexus serve --sse --path /sse", "/sse"),
        ("plexus serve --stdio --sse", "--http"),
        ("plexus serve --stdio --path /x", "--http"),
        ("plexus serve --allow-host http://a", "host name"),
        ("plexus serve --allow-origin a.example", "origin"),
        ("plexus serve --era ancient", "legacy"),
        ("plexus serve --log-level loud", "trace"),
        ("plexus serv", "serve"),
    ];
    for (line, hint) in cases {
        let error = read(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(hint), "{line}: {error}");
    }
}

#[test]
fn the_time_for_answers_can_be_set() {
    let time = |line| {
        serve(line)
            .downstream
            .options(Options::default())
            .answer_time
    };
    assert_eq!(time("plexus serve"), Options::default().answer_time);
    assert_eq!(time("plexus serve --answer-time 7"), Duration::from_secs(7));
    for wrong in ["0", "-1", "1.5", "86401", "long"] {
        let line = format!("plexus serve --answer-time={wrong}");
        let error = read(&line).unwrap_err().to_string();
        assert!(error.contains("from 1 to 86400"), "{line}: {error}");
    }
}
