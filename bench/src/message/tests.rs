use serde_json::{Value, json};

use super::job::text;
use super::*;
use crate::http_response::BodyEnds;

fn call(bytes: usize) -> Job {
    Job::Call(Call::new("say", bytes))
}

fn body(prepared: &Prepared) -> Value {
    let text = String::from_utf8(prepared.bytes.clone()).unwrap();
    let body = text
        .split_once("\r\n\r\n")
        .map_or(text.as_str(), |parts| parts.1);
    serde_json::from_str(body).unwrap()
}

#[test]
fn a_request_says_the_same_in_headers_and_body() {
    let address = "127.0.0.1:80".parse().unwrap();
    let requests = call(10).requests(Era::Stateless);
    let mut post = requests[0].post(address, "/mcp", "2026-07-28", None);
    post.number(42);
    let text = String::from_utf8(post.bytes.clone()).unwrap();
    assert!(
        text.contains("Mcp-Method: tools/call\r\nMcp-Name: say\r\n"),
        "{text}"
    );
    let body = body(&post);
    assert_eq!(body["id"], json!(100_000_042));
    let arguments = &body["params"]["arguments"];
    assert_eq!(arguments, &json!({"text": "The q", "times": 2}));
    let version = &body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    assert_eq!(version, "2026-07-28");
}

#[test]
fn a_line_is_a_message_of_the_session() {
    let mut line = call(10).requests(Era::Handshake)[0].line();
    line.number(7);
    assert_eq!(line.bytes.last(), Some(&b'\n'));
    let body = body(&line);
    assert_eq!(body["id"], json!(100_000_007));
    assert_eq!(body["params"].get("_meta"), None);
}

#[test]
fn answers_to_other_requests_and_other_texts_are_wrong() {
    let mut check = call(10).check(false);
    let answer = |id: u64, text: &str| {
        json!({"id": id, "result": {"content": [{"text": text}]}}).to_string()
    };
    let right = answer(100_000_001, "The qThe q");
    check.check(1, right.as_bytes()).unwrap();
    let spaced = right.replace(':', ": ");
    check.check(1, spaced.as_bytes()).unwrap();
    check.check(2, right.as_bytes()).unwrap_err();
    for text in ["The q", "The qThe q…", "The quick "] {
        let wrong = answer(100_000_001, text);
        check.check(1, wrong.as_bytes()).unwrap_err();
    }
    let error = r#"{"id":100000001,"error":{"code":-32603,"message":"The qThe q"}}"#;
    check.check(1, error.as_bytes()).unwrap_err();
}

#[test]
fn a_tool_that_reports_no_progress_in_its_stream_is_wrong() {
    let answer = fixed_answer(10);
    let stream = format!("data: {}\n\ndata: {answer}\n\n", fixed_progress());
    Check::check_progress(stream.as_bytes()).unwrap();
    let stream = format!("data: {answer}\n\n");
    Check::check_progress(stream.as_bytes()).unwrap_err();
}

#[test]
fn progress_is_asked_for_with_a_token() {
    let with_progress = Call {
        with_progress: true,
        ..Call::new("say", 10)
    };
    for era in [Era::Handshake, Era::Stateless] {
        let asked = &Job::Call(with_progress.clone()).requests(era)[0];
        let body = body(&asked.line());
        assert_eq!(body["params"]["_meta"]["progressToken"], json!(1));
    }
}

#[test]
fn a_long_answer_is_known_by_its_ends_and_its_length() {
    let mut check = call(2000).check(false);
    let text = text(1000).repeat(2);
    let answer = |id: u64| json!({"id": id, "result": {"content": [{"text": text}]}}).to_string();
    let first = answer(100_000_001);
    check.check(1, first.as_bytes()).unwrap();
    let ends = |answer: &str, number, length| {
        let start = &answer.as_bytes()[..100];
        let end = &answer.as_bytes()[answer.len() - 100..];
        check.check_ends(number, BodyEnds { start, end, length })
    };
    ends(&answer(100_000_002), 2, first.len()).unwrap();
    ends(&answer(100_000_002), 3, first.len()).unwrap_err();
    ends(&answer(100_000_002), 2, first.len() - 1).unwrap_err();
}

#[test]
fn pages_are_known_by_their_lengths() {
    let page = |id: u64, tools: &Value, next: Option<&str>| {
        json!({"id": id, "result": {"tools": tools, "nextCursor": next}}).to_string()
    };
    let first = page(
        100_000_000,
        &json!([{"name": "a"}, {"name": "b"}]),
        Some("c"),
    );
    assert_eq!(
        read_page(first.as_bytes()).unwrap(),
        (2, Some("c".to_owned()))
    );
    let pages = vec![Page {
        cursor: None,
        length: first.len(),
    }];
    let mut check = Job::List { pages }.check(false);
    check.check(0, first.as_bytes()).unwrap();
    check.check(1, first.as_bytes()).unwrap_err();
    let shorter = page(100_000_000, &json!([{"name": "a"}]), None);
    check.check(0, shorter.as_bytes()).unwrap_err();
    assert_eq!(read_page(shorter.as_bytes()).unwrap(), (1, None));
    read_page(br#"{"id":1,"error":{}}"#).unwrap_err();
}
