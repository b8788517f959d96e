//! Output and result of commands.

use std::time::Duration;

use plexus_mcp_core::Event;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{begin, call, definition, run, texts};

/// S003-18: the input schema, with the extensions of this service, and the annotations.
#[test]
fn the_tool_definition_has_its_schema_and_annotations() {
    let tool = definition();
    let input = &tool["inputSchema"];
    assert_eq!(input["required"], json!(["command"]));
    let mut properties: Vec<_> = input["properties"].as_object().unwrap().keys().collect();
    properties.sort();
    assert_eq!(properties, ["command", "cwd", "timeout_ms"]);
    assert_eq!(input["additionalProperties"], false);
    let hints = &tool["annotations"];
    assert_eq!(hints["destructiveHint"], true);
    assert_eq!(hints["openWorldHint"], true);
    assert_eq!(hints["readOnlyHint"], false);
}

/// S003-44, C15: the text result is standard output, and the structured result has all fields.
#[tokio::test]
async fn standard_output_is_the_result() {
    let result = run("echo one; echo two").await;
    assert_eq!(texts(&result), ["one\ntwo\n"]);
    assert_ne!(result["isError"], true);
    let structured = json!({ "stdout": "one\ntwo\n", "stderr": "", "exit_code": 0 });
    assert_eq!(result["structuredContent"], structured);
}

/// C15, S003-22: standard error is a separate block, and a failed command is a failed call.
#[tokio::test]
async fn a_failed_command_is_a_failed_call() {
    let result = run("echo out; echo err >&2; exit 3").await;
    assert_eq!(texts(&result), ["out\n", "err\n", "[exit code: 3]"]);
    assert_eq!(result["isError"], true);
    let structured = json!({ "stdout": "out\n", "stderr": "err\n", "exit_code": 3 });
    assert_eq!(result["structuredContent"], structured);

    // C17: output on standard error alone does not make the call fail.
    let result = run("echo err >&2").await;
    assert_eq!(texts(&result), ["err\n"]);
    assert_ne!(result["isError"], true);
}

#[tokio::test]
async fn the_result_of_a_killed_command_names_the_signal() {
    let result = run("kill -s KILL $$").await;
    assert_eq!(
        texts(&result),
        ["[the command was killed by signal 9 (SIGKILL)]"]
    );
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["exit_code"], Value::Null);
}

/// S003-22, C16: without output, the text block is the structured result as JSON.
#[tokio::test]
async fn without_output_the_text_is_the_structured_result() {
    let result = run("true").await;
    let [text] = texts(&result)[..] else {
        panic!("{result}")
    };
    let read: Value = serde_json::from_str(text).unwrap();
    assert_eq!(read, json!({ "stdout": "", "stderr": "", "exit_code": 0 }));
    assert!(text.contains('\n'), "it is laid out for people: {text}");
}

/// Both streams are read at the same time. (Substrate read one to its end before the other, and
/// hung.)
#[tokio::test]
async fn neither_stream_waits_for_the_other() {
    let filler = "head -c 200000 /dev/zero | tr '\\0' x";
    let command = format!("{filler} >&2; {filler}; {filler} >&2; {filler}");
    let result = run(&command).await;
    assert_eq!(result["structuredContent"]["exit_code"], 0);
    for stream in ["stdout", "stderr"] {
        let text = result["structuredContent"][stream].as_str().unwrap();
        assert!(text.contains("bytes omitted]"), "{stream}");
    }
}

/// S003-02, S003-46, C14: output is streamed while the command runs, standard error marked as such.
#[tokio::test]
async fn output_is_streamed_while_the_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    let command = "echo one; until [ -e go ]; do sleep 0.01; done; echo two >&2; echo three";
    let mut calling = begin(&json!({ "command": command, "cwd": folder.path() }));
    assert_eq!(calling.until("one\n").await, "one\n");
    std::fs::write(folder.path().join("go"), "").unwrap();
    let result: Value = calling.answer.await.unwrap().decode().unwrap();
    assert_eq!(texts(&result), ["one\nthree\n", "two\n"]);
    let (mut said, mut warned) = (String::new(), String::new());
    while let Some(event) = calling.events.try_recv() {
        match event {
            Event::Content(piece) => said.push_str(&piece),
            Event::Stderr(piece) => warned.push_str(&piece),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!([said, warned], ["three\n", "two\n"]);
}

/// C57: beyond the limit, the result has the head and the tail, and the number of bytes left out.
#[tokio::test]
async fn long_output_keeps_its_head_and_tail() {
    let result = run("echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last").await;
    let text = texts(&result)[0];
    assert!(text.starts_with("first\nxxx") && text.ends_with("xxx\nlast\n"));
    assert!(text.len() < 300_000);
    let omitted = 1_000_012 - 256 * 1024;
    assert!(text.contains(&format!("x\n[{omitted} bytes omitted]\nx")));
}

#[tokio::test]
async fn invalid_utf8_in_the_output_is_replaced() {
    let result = run(r"printf 'a\xffb \xc3\xa4 \xe2\x82'").await;
    assert_eq!(texts(&result), ["a\u{fffd}b ä \u{fffd}"]);
}

#[tokio::test]
async fn standard_input_is_empty() {
    assert_eq!(texts(&run("cat; echo done").await), ["done\n"]);
}

#[tokio::test]
async fn commands_run_in_the_given_directory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let result = call(json!({ "command": "pwd -P", "cwd": folder })).await;
    assert_eq!(texts(&result), [format!("{}\n", folder.display())]);

    let missing = folder.join("missing");
    let result = call(json!({ "command": "pwd", "cwd": missing })).await;
    assert_eq!(result["isError"], true);
    assert!(texts(&result)[0].contains("no directory that can be entered"));
}

/// If a command cannot be started, the error says why.
#[tokio::test]
async fn a_command_that_cannot_be_started_says_why() {
    for command in [
        "echo \0".to_owned(),
        format!("echo {}", "x".repeat(200_000)),
    ] {
        let result = call(json!({ "command": command })).await;
        assert_eq!(result["isError"], true);
        let text = texts(&result)[0];
        assert!(text.starts_with("cannot start `bash`: "), "{text}");
    }
}

/// S003-50, C57: a gigabyte of output is streamed without being kept in memory.
#[tokio::test]
async fn endless_output_takes_no_memory() {
    // Warm up: allocations that do not depend on the output are made now.
    run("head -c 1000000 /dev/zero").await;
    let before = resident_kib();
    let began = Instant::now();
    let mut calling = begin(&json!({ "command": "yes | head -c 1000000000" }));
    calling.until("y\n").await;
    let first = began.elapsed();
    let (mut peak, mut pieces, mut bytes) = (0, 0_u32, 0);
    let result = loop {
        tokio::select! {
            biased;
            Some(event) = calling.events.recv() => {
                let Event::Content(text) = event else { panic!("{event:?}") };
                bytes += text.len();
                pieces += 1;
                if pieces.is_multiple_of(1000) {
                    peak = peak.max(resident_kib());
                }
            }
            result = &mut calling.answer => break result.unwrap(),
        }
    };
    peak = peak.max(resident_kib());
    println!(
        "first bytes after {first:?}, {bytes} in {pieces} pieces and {:?}, {} KiB more memory",
        began.elapsed(),
        peak.saturating_sub(before)
    );
    assert!(bytes > 990_000_000, "{bytes}");
    assert!(peak < before + 16 * 1024, "{before} KiB became {peak} KiB");
    assert!(first < Duration::from_secs(1), "{first:?}");
    let result: Value = result.decode().unwrap();
    assert!(texts(&result)[0].contains(" bytes omitted]\n"));
}

/// Resident memory of this process; 0 if the system does not report it.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.map_or(0, |number| number.parse().unwrap())
}
