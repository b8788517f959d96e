//! A stdio MCP server that runs a script, correct or not.
//!
//! `scripted-server ADDRESS SCRIPT` connects to the test at ADDRESS. It forwards every received
//! line to the test, and reads further steps from it, one JSON value per line. The script is a
//! [`plexus_testkit::server::Script`] as JSON.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use plexus_testkit::server::{MARK, Script, Step};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report_error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(script)) = (arguments.next(), arguments.next()) else {
        return Err("usage: scripted-server ADDRESS SCRIPT".into());
    };
    let script: Script = serde_json::from_str(&script)?;
    let test = TcpStream::connect(address)?;
    let directions = BufReader::new(test.try_clone()?);
    let test = Arc::new(Mutex::new(test));
    report(&test, &std::process::id().to_string());
    let reporting = Arc::clone(&test);
    std::thread::spawn(move || perform_directions(directions, &reporting));

    for step in &script.start {
        perform(step, &Value::Null);
    }
    let mut times: HashMap<String, usize> = HashMap::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        report(&test, &line);
        let message: Value = serde_json::from_str(&line)?;
        let method = message.get("method").and_then(Value::as_str);
        let Some(rule) = method.and_then(|method| script.on.get(method)) else {
            continue;
        };
        let time = times.entry(method.unwrap_or_default().to_owned());
        let time = time.and_modify(|time| *time += 1).or_default();
        for step in rule.get(*time).or(rule.last()).into_iter().flatten() {
            perform(step, &message);
        }
    }
    Ok(())
}

/// Sends a line to the test, which may have disconnected.
fn report(test: &Mutex<TcpStream>, line: &str) {
    let mut test = test.lock().unwrap_or_else(PoisonError::into_inner);
    drop(test.write_all(format!("{line}\n").as_bytes()));
}

/// Performs the steps that the test sends.
fn perform_directions(directions: BufReader<TcpStream>, test: &Mutex<TcpStream>) {
    for line in directions.lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Step::Mark) => report(test, &json!(MARK).to_string()),
            Ok(step) => perform(&step, &Value::Null),
            Err(error) => report_error(&format!("{error}: {line}")),
        }
    }
}

/// Performs one step; `message` is the message that triggered it. A closed pipe is not an error.
fn perform(step: &Step, message: &Value) {
    let id = message.get("id");
    match step {
        Step::Result(result) => say(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
        Step::Error(error) => say(&json!({"jsonrpc": "2.0", "id": id, "error": error})),
        Step::Echo => {
            let echo = message.get("params");
            say(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": [], "echo": echo}}));
        }
        Step::Say(message) => say(message),
        Step::Print(line) => print(&format!("{line}\n")),
        Step::Write(text) => print(text),
        Step::Complain(line) => drop(writeln!(io::stderr(), "{line}")),
        Step::Flood(message) => flood(message),
        Step::EndlessLine => {
            let piece = "x".repeat(1 << 16);
            while io::stdout().write_all(piece.as_bytes()).is_ok() {}
            hang();
        }
        Step::CloseOutput => close(rustix::stdio::dup2_stdout),
        Step::CloseInput => {
            close(rustix::stdio::dup2_stdin);
            hang();
        }
        Step::Hang => hang(),
        Step::Exit(code) => exit(*code),
        other => report_error(&format!("cannot do {other:?}")),
    }
}

fn say(message: &Value) {
    print(&format!("{message}\n"));
}

fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    drop(stdout.write_all(text.as_bytes()));
    drop(stdout.flush());
}

fn flood(message: &Value) {
    let lines = Arc::new(format!("{message}\n").repeat(100));
    std::thread::spawn(move || while io::stdout().lock().write_all(lines.as_bytes()).is_ok() {});
}

/// Replaces a pipe by `/dev/null`.
fn close(replace: impl FnOnce(File) -> rustix::io::Result<()>) {
    let nothing = File::options().read(true).write(true).open("/dev/null");
    let closed = nothing.and_then(|nothing| Ok(replace(nothing)?));
    if let Err(error) = closed {
        report_error(&error.to_string());
    }
}

fn report_error(what: &str) {
    drop(writeln!(io::stderr(), "scripted-server: {what}"));
}

fn hang() {
    // A parked thread may wake up spuriously.
    #[expect(clippy::infinite_loop, reason = "what it is for")]
    loop {
        std::thread::park();
    }
}

#[expect(clippy::exit, reason = "a script may end the program at any place")]
fn exit(code: i32) {
    std::process::exit(code);
}
