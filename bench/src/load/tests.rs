use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use plexus_mcp_protocol::Era;

use super::*;
use crate::limit;
use crate::message::{Call, Job, SIZES};
use crate::placement::{Cores, Placement, Seat};
use crate::process::{Program, Running, pause};

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

fn target(path: &str, is_fixed: bool) -> http::Target {
    http::Target {
        address: limit(),
        path: path.to_owned(),
        era: Era::Stateless,
        handshake: Era::Handshake.newest_revision().as_str(),
        streams: None,
        has_sessions: !is_fixed,
        is_fixed,
        process: std::process::id(),
    }
}

fn call(bytes: usize) -> Job {
    Job::Call(Call::new("repeat", bytes))
}

fn start(program: &str, arguments: &[&str], home: &std::path::Path) -> Running {
    let affinity = Cores::find()
        .unwrap()
        .of(Seat::Subject, Placement::AllCores);
    Program::new(program, arguments)
        .start(affinity, home)
        .unwrap()
}

#[test]
fn answers_of_every_size_and_form_are_counted() {
    for bytes in SIZES {
        for is_stream in [false, true] {
            let path = limit::http::path_of(bytes, is_stream);
            let target = http::Target {
                streams: Some(is_stream),
                ..target(&path, true)
            };
            let measured = http::run(&target, &call(bytes), SHORT_LOAD).unwrap();
            assert!(measured.answers > 0, "{path}");
            assert!(measured.elapsed >= SHORT_LOAD.window, "{path}");
        }
    }
}

#[test]
fn an_answer_to_another_request_fails_the_run() {
    let path = limit::http::path_of(100, false);
    let failed = http::run(&target(&path, false), &call(100), SHORT_LOAD).unwrap_err();
    assert!(failed.to_string().starts_with("a wrong answer"), "{failed}");
}

#[test]
fn an_error_fails_the_run() {
    let failed = http::run(&target("/nowhere", true), &call(100), SHORT_LOAD).unwrap_err();
    assert!(failed.to_string().starts_with("status 404"), "{failed}");
}

#[test]
fn lines_are_counted_whichever_order_they_come_back_in() {
    let home = tempfile::tempdir().unwrap();
    let mut process = start("cat", &[], home.path());
    let measured = stdio::run(&mut process, &call(100), SHORT_LOAD, true).unwrap();
    assert!(measured.latencies.total() > 4);
}

#[test]
fn a_program_that_says_nonsense_fails_the_run() {
    let home = tempfile::tempdir().unwrap();
    let mut process = start("yes", &["no"], home.path());
    let failed = stdio::run(&mut process, &call(100), SHORT_LOAD, true).unwrap_err();
    assert_eq!(failed.to_string(), "no answer: no");
}
