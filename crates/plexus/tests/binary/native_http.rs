//! The native protocol over HTTP: `plexus serve --native`.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{post, serve};
use crate::process::{Plexus, TEST_TIMEOUT};

/// The stream of a call.
struct Call {
    reader: BufReader<TcpStream>,
    /// Where questions are answered.
    answers: String,
}

impl Call {
    /// Makes a call that must begin.
    fn begin(address: &str, headers: &str, request: &Value) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let body = request.to_string();
        write!(
            stream,
            "POST /native HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut call = Self {
            reader: BufReader::new(stream),
            answers: String::new(),
        };
        let status = call.line();
        assert!(status.starts_with("HTTP/1.1 200 "), "{status}");
        let (event, data) = call.event();
        assert_eq!(event, "endpoint");
        call.answers = data;
        call
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The name and the data of the next event. The lines of chunks and comments are skipped.
    fn event(&mut self) -> (String, String) {
        let mut name = String::new();
        loop {
            let line = self.line();
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (name, data.to_owned());
            }
        }
    }

    fn message(&mut self) -> Value {
        let (event, data) = self.event();
        assert_eq!(event, "message");
        serde_json::from_str(&data).unwrap()
    }

    /// The next event of the call itself.
    fn result(&mut self) -> Value {
        self.message()["params"]["result"].take()
    }
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// S003-43: the messages are those of the native protocol on pipes.
#[test]
fn a_call_is_a_stream_of_events() {
    let (_plexus, address, _) = serve(&["--native"]);
    let mut call = Call::begin(&address, "", &request("echo.echo", &json!(["hi", 2])));
    assert_eq!(
        call.message(),
        json!({"jsonrpc": "2.0", "id": 1, "result": 1})
    );
    assert_eq!(call.result(), json!({"type": "start"}));
    let mut text = String::new();
    let last = loop {
        let event = call.result();
        match event["data"].as_str() {
            Some(data) => text.push_str(data),
            None => break event,
        }
    };
    assert_eq!(
        (text.as_str(), last),
        ("hi\nhi", json!({"type": "complete"}))
    );
    // The end of the response, after which nothing can be answered.
    while call.line() != "0" {}
    let late = post(
        &address,
        &call.answers,
        &address,
        "",
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    );
    assert!(late.starts_with("HTTP/1.1 404 "), "{late}");
}

#[test]
fn a_call_that_cannot_begin_is_an_error() {
    let (_plexus, address, _) = serve(&["--native"]);
    for (method, params, code) in [
        ("no.such", json!([]), "-32601"),
        ("tools/list", json!({}), "-32601"),
        ("initialize", json!({}), "-32601"),
        ("unsubscribe", json!([1]), "-32601"),
        ("echo.echo", json!(["hi", 1, 1, 1]), "-32602"),
    ] {
        let answer = post(
            &address,
            "/native",
            &address,
            "",
            &request(method, &params).to_string(),
        );
        assert!(answer.contains("application/json"), "{method}: {answer}");
        assert!(answer.contains(code), "{method}: {answer}");
    }
    let notification = r#"{"jsonrpc":"2.0","method":"echo.ping"}"#;
    let answer = post(&address, "/native", &address, "", notification);
    assert!(answer.contains("-32600"), "{answer}");
}

/// The checks are those of the MCP endpoint.
#[test]
fn every_check_of_the_endpoint_holds() {
    let ping = request("echo.ping", &json!({})).to_string();
    let (_plexus, address, _) = serve(&["--native"]);
    let status = |host: &str, headers: &str, body: &str| {
        let answer = post(&address, "/native", host, headers, body);
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status("evil.example", "", &ping), "403");
    assert_eq!(
        status(&address, "Origin: https://evil.example\r\n", &ping),
        "403"
    );
    let large = request("echo.echo", &json!(["x".repeat(2_000_000)])).to_string();
    assert_eq!(status(&address, "", &large), "413");

    let home = Home::with(&[]);
    let mut adding = home.start(&["token", "add", "laptop"]);
    assert_eq!(adding.end().code, Some(0));
    let plexus = home.start(&[
        "serve",
        "--http",
        "127.0.0.1:0",
        "--native",
        "--require-token",
    ]);
    let url = plexus.wait_for_stderr("listening on http://");
    let (guarded, _) = url.split_once('/').unwrap();
    let refused = post(guarded, "/native", guarded, "", &ping);
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");

    // Without the option there is nothing.
    let (_plexus, address, _) = serve(&[]);
    let nothing = post(&address, "/native", &address, "", &ping);
    assert!(nothing.starts_with("HTTP/1.1 404 "), "{nothing}");
}

/// A home directory whose policy denies one tool and asks for another.
fn with_policy() -> (Home, Plexus, String) {
    let policy = "[policy]\nrules = [\n  { tool = \"echo_once\", action = \"deny\" },\n  \
                  { tool = \"echo_echo\", action = \"ask\" },\n]\n";
    let home = Home::with(&[(".config/plexus/plexus.toml", policy)]);
    let plexus = home.start(&["serve", "--http", "127.0.0.1:0", "--native"]);
    let url = plexus.wait_for_stderr("listening on http://");
    let address = url.split_once('/').unwrap().0.to_owned();
    (home, plexus, address)
}

#[test]
fn the_policy_holds() {
    let (_home, _plexus, address) = with_policy();
    let mut call = Call::begin(&address, "", &request("echo.once", &json!(["hi"])));
    call.message();
    assert_eq!(call.result()["type"], "start");
    let denied = call.result();
    assert_eq!(denied["type"], "error", "{denied}");
    assert!(
        denied["message"].as_str().unwrap().contains("echo_once"),
        "{denied}"
    );
}

/// A client that declares that it can be asked gets the question as an event, and answers it.
#[test]
fn questions_are_events_with_an_answer_request() {
    let (_home, _plexus, address) = with_policy();
    let capabilities = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let params = json!({"message": "hi", "_meta": capabilities});
    let mut call = Call::begin(&address, "", &request("echo.echo", &params));
    assert_eq!(call.message()["result"], 1);
    assert_eq!(call.result()["type"], "start");
    let question = call.message();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let schema = &question["params"]["requestedSchema"];
    let (key, property) = schema["properties"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    let once = property["enum"].as_array().or(property["oneOf"].as_array());
    let once = once.map_or(json!(true), |choices| {
        let choice = &choices[0];
        choice.get("const").unwrap_or(choice).clone()
    });
    let answer = json!({"jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {key: once}}});

    let elsewhere = format!("/native/{}", "A".repeat(43));
    let lost = post(&address, &elsewhere, &address, "", &answer.to_string());
    assert!(lost.starts_with("HTTP/1.1 404 "), "{lost}");
    let no_answer = post(
        &address,
        &call.answers,
        &address,
        "",
        &request("echo.ping", &json!({})).to_string(),
    );
    assert!(no_answer.contains("-32600"), "{no_answer}");

    let taken = post(&address, &call.answers, &address, "", &answer.to_string());
    assert!(taken.starts_with("HTTP/1.1 202 "), "{taken}");
    assert_eq!(call.result(), json!({"type": "stdout", "data": "hi"}));
    assert_eq!(call.result()["type"], "complete");

    // A client that cannot be asked gets the reason.
    let mut call = Call::begin(&address, "", &request("echo.echo", &json!(["hi"])));
    call.message();
    assert_eq!(call.result()["type"], "start");
    assert_eq!(call.result()["type"], "error");
}

/// S003: a closed stream cancels its call.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_stream_cancels_the_call() {
    let (_plexus, address, _) = serve(&["--native", "--allow-bash"]);
    let command = json!(["echo $$; exec sleep 1000"]);
    let mut call = Call::begin(&address, "", &request("bash.execute", &command));
    call.message();
    assert_eq!(call.result()["type"], "start");
    let output = call.result();
    let pid = output["data"].as_str().unwrap().trim().to_owned();
    let process = std::path::Path::new("/proc").join(pid);
    assert!(process.exists());
    drop(call);
    while process.exists() {
        // Each request takes a moment, and the program answers other requests in between.
        post(
            &address,
            "/native",
            &address,
            "",
            &request("echo.ping", &json!({})).to_string(),
        );
    }
}
