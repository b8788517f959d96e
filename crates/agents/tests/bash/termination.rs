//! Timeouts and cancellation of commands.

use std::time::Duration;

use plexus_testkit::ForeignProcess;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{begin, call, run, texts};

/// Starts two child processes that print their process ids; all three ignore SIGTERM.
const STUBBORN: &str = "trap '' TERM; (echo $BASHPID; while :; do sleep 1; done) & \
    (echo $BASHPID; sleep 1000; :) & echo $$; wait; while :; do sleep 1; done";

/// S003-27, S003-07: cancelling the call ends the command, with all its child processes.
#[tokio::test]
async fn cancelling_ends_the_whole_tree() {
    let mut calling = begin(&json!({ "command": STUBBORN }));
    let mut numbers = String::new();
    while numbers.lines().count() < 3 {
        numbers += &calling.until("\n").await;
    }
    let processes: Vec<_> = numbers.lines().map(ForeignProcess::of).collect();
    let began = Instant::now();
    drop(calling);
    for process in processes {
        process.ended().await;
    }
    let took = began.elapsed();
    println!("cancelling took {took:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// A cancelled command gets SIGTERM first, so that it can clean up.
#[tokio::test]
async fn cancelling_lets_a_command_tidy_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidy");
    let command = "trap 'echo > tidy; exit' TERM; echo $$; while :; do sleep 0.01; done";
    let mut calling = begin(&json!({ "command": command, "cwd": folder.path() }));
    let number = calling.until("\n").await;
    drop(calling);
    ForeignProcess::of(number.trim()).ended().await;
    assert!(file.exists());
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let began = Instant::now();
    let result = call(json!({ "command": STUBBORN, "timeout_ms": 300 })).await;
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(result["isError"], true);
    let texts = texts(&result);
    assert_eq!(texts.last(), Some(&"[timed out after 300 ms]"));
    assert_eq!(result["structuredContent"]["exit_code"], Value::Null);
    let numbers: Vec<_> = texts[0].lines().collect();
    assert_eq!(numbers.len(), 3, "what it wrote before is there: {texts:?}");
    for number in numbers {
        ForeignProcess::of(number).ended().await;
    }
}

/// A command times out even if its caller does not read the progress notifications.
#[tokio::test]
async fn a_caller_that_does_not_read_does_not_stop_the_clock() {
    let calling = begin(&json!({ "command": "yes", "timeout_ms": 200 }));
    let result: Value = calling.answer.await.unwrap().decode().unwrap();
    assert_eq!(texts(&result).last(), Some(&"[timed out after 200 ms]"));
}

#[tokio::test]
async fn background_processes_of_a_command_are_killed() {
    let began = Instant::now();
    let result = run("sleep 1000 & echo $!").await;
    assert!(began.elapsed() < Duration::from_secs(5));
    ForeignProcess::of(texts(&result)[0].trim()).ended().await;

    // Not even if it never stops talking.
    let result = run("yes & echo $! >&2").await;
    let number = result["structuredContent"]["stderr"].as_str().unwrap();
    ForeignProcess::of(number.trim()).ended().await;
}

/// Arguments out of range are refused before anything runs.
#[tokio::test]
async fn arguments_are_checked() {
    for arguments in [
        json!({}),
        json!({ "command": "" }),
        json!({ "command": "true", "timeout_ms": 0 }),
        json!({ "command": "true", "timeout_ms": 86_400_001 }),
        json!({ "command": "true", "cwd": 1 }),
        json!({ "command": "true", "shell": "zsh" }),
    ] {
        let refused = begin(&arguments).answer.await;
        assert!(refused.is_err(), "{arguments}");
    }
}
