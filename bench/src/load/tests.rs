use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use plexus_mcp_protocol::Era;

use super::*;
use crate::limit;
use crate::message::{Job, SIZES};
use crate::process::{Cores, Program, pause};

const SHORT_LOAD: Load = Load {
    concurrency: 4,
    warm_up: Duration::from_millis(5),
    window: Duration::from_millis(50),
};

/// Starts the bare server, which runs until the test ends.
fn limit() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    std::thread::spawn(move || limit::http::serve(address, None));
    while TcpStream::connect(address).is_err() {
        pause(Duration::from_millis(1));
    }
    address
}

fn target(path: &str, is_limit: bool) -> http::Target {
    http::Target {
        address: limit(),
        path: path.to_owned(),
        era: Era::Stateless,
        handshake: Era::Handshake.newest_revision().as_str(),
        streams: None,
        is_limit,
        process: std::process::id(),
    }
}

fn echo(bytes: usize) -> Job {
    Job::Echo {
        tools: vec!["echo".to_owned()],
        argument: "message".to_owned(),
        bytes,
        with_progress: false,
    }
}

#[test]
fn answers_of_every_size_and_form_are_counted() {
    for bytes in SIZES {
        for is_stream in [false, true] {
            let path = limit::http::echo_path(bytes, is_stream);
            let measured = http::run(&target(&path, true), &echo(bytes), SHORT_LOAD).unwrap();
            assert!(measured.latencies.total() > 0, "{path}");
            assert!(measured.elapsed >= SHORT_LOAD.window, "{path}");
        }
    }
}

#[test]
fn an_answer_to_another_request_fails_the_run() {
    let path = limit::http::echo_path(100, false);
    let failed = http::run(&target(&path, false), &echo(100), SHORT_LOAD).unwrap_err();
    assert!(failed.to_string().starts_with("a wrong answer"), "{failed}");
}

#[test]
fn an_error_fails_the_run() {
    let failed = http::run(&target("/nowhere", true), &echo(100), SHORT_LOAD).unwrap_err();
    assert!(failed.to_string().starts_with("status 404"), "{failed}");
}

#[test]
fn lines_are_counted_whichever_order_they_come_back_in() {
    let home = tempfile::tempdir().unwrap();
    let mut process = Program::new("cat", &[])
        .start(Cores::take().unwrap().subject, home.path())
        .unwrap();
    let measured = stdio::run(&mut process, &echo(100), SHORT_LOAD, true).unwrap();
    assert!(measured.latencies.total() > 4);
}

#[test]
fn a_program_that_says_nonsense_fails_the_run() {
    let home = tempfile::tempdir().unwrap();
    let mut process = Program::new("yes", &["no"])
        .start(Cores::take().unwrap().subject, home.path())
        .unwrap();
    let failed = stdio::run(&mut process, &echo(100), SHORT_LOAD, true).unwrap_err();
    assert_eq!(failed.to_string(), "no answer: no");
}
