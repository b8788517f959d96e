//! Each test starts real processes. Events that the system reports are awaited. Others, such as the
//! end of a process that is not our child, are polled with [`until`].

mod running;

use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use self::running::*;
use super::stderr::{STDERR_LINE_MAX_BYTES, STDERR_TAIL_MAX_BYTES, STDERR_TAIL_MAX_LINES};
use super::*;

/// Longer than any event of these tests takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// A grace period for programs that exit earlier.
const LONG_GRACE: Grace = Grace::new(TEST_TIMEOUT, TEST_TIMEOUT);
/// Short enough for a test, long enough for a program to exit.
const SHORT_TIMEOUT: Duration = Duration::from_millis(100);

/// Starts a background process, and writes its process id.
const TREE: &str = "sleep 1000 & echo $!; wait";
const STUBBORN_TREE: &str = "trap '' TERM; sleep 1000 & echo $!; wait";

/// S001-28: standard input and output are pipes of ours.
#[tokio::test]
async fn talks_through_its_input_and_output() {
    let mut running = Running::of(&Program::new("cat"));
    running.input.write_all(b"{\"id\":1}\n").await.unwrap();
    assert_eq!(running.line().await, "{\"id\":1}");

    let Running { child, input, .. } = running;
    drop(input);
    assert_eq!(child.stop(LONG_GRACE).await, ExitReport::Code(0));
}

/// S004-37: a large message.
#[tokio::test]
async fn passes_megabytes() {
    let Running {
        child,
        mut input,
        mut output,
    } = Running::of(&Program::new("cat"));
    let sent = vec![b'x'; 4 * 1024 * 1024];
    let mut received = Vec::new();
    let write = async {
        input.write_all(&sent).await.unwrap();
        drop(input);
    };
    let both = async {
        tokio::join!(write, output.read_to_end(&mut received))
            .1
            .unwrap()
    };
    within(both).await;
    assert!(received == sent);
    assert_eq!(child.stop(LONG_GRACE).await, ExitReport::Code(0));
}

/// S001-52, S004-32, S004-K035: the entry's environment on top of ours.
#[tokio::test]
async fn merges_the_environment() {
    assert!(std::env::var_os("PATH").is_some() && std::env::var_os("HOME").is_some());
    let script = r#"echo "${PATH:+kept} ${HOME-removed} $ADDED""#;
    let program = sh(script).env("ADDED", "a b").env_remove("HOME");
    assert_eq!(Running::of(&program).line().await, "kept removed a b");

    let program = sh("echo $HOME").env("HOME", "/elsewhere");
    assert_eq!(Running::of(&program).line().await, "/elsewhere");
}

/// S001-51.
#[tokio::test]
async fn runs_in_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().canonicalize().unwrap();
    let mut running = Running::of(&sh("pwd").cwd(&directory));
    assert_eq!(running.line().await, directory.to_str().unwrap());
}

#[tokio::test]
async fn arguments_reach_the_program_as_they_are() {
    let program = sh(r#"printf '%s\n' "$@""#)
        .args(["sh", "$HOME", "a b"])
        .arg("*");
    let mut running = Running::of(&program);
    assert_eq!(running.line().await, "$HOME");
    assert_eq!(running.line().await, "a b");
    assert_eq!(running.line().await, "*");
}

/// TRAP-35: a definition can set `PATH`, by which the program is looked up, because Plexus may be
/// started with another `PATH` than a terminal has.
#[tokio::test]
async fn a_program_is_looked_up_in_the_path_of_its_entry() {
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("plexus-only-there");
    std::os::unix::fs::symlink("/bin/echo", &file).unwrap();
    let program = Program::new("plexus-only-there").arg("found");
    let reason = refused(&program);
    assert!(reason.contains("no directory of PATH"), "{reason}");
    let program = program.env("PATH", elsewhere.path().to_str().unwrap());
    assert_eq!(Running::of(&program).line().await, "found");
}

/// TRAP-35: the error for a missing launcher says where to get it.
#[tokio::test]
async fn a_missing_program_is_named_with_a_hint() {
    let nowhere = tempfile::tempdir().unwrap();
    let path = nowhere.path().to_str().unwrap();
    let program = Program::new("npx")
        .env("PATH", path)
        .env("TOKEN", "hunter2");
    assert_eq!(
        refused(&program),
        "cannot start `npx`: no directory of PATH has such a program; \
         it comes with Node.js (https://nodejs.org)"
    );
    assert_eq!(
        refused(&Program::new("plexus-no-such-program")),
        "cannot start `plexus-no-such-program`: no directory of PATH has such a program"
    );
    assert_eq!(
        refused(&Program::new("./server").cwd(nowhere.path())),
        format!("cannot start `{path}/./server`: there is no such file")
    );
}

/// TRAP-36: the error for a Windows command says what to write instead.
#[tokio::test]
async fn a_command_of_windows_is_named_with_a_hint() {
    let nowhere = tempfile::tempdir().unwrap();
    let path = nowhere.path().to_str().unwrap();
    for (command, hint) in [
        ("cmd", "write what follows `/c` as the command"),
        ("CMD.EXE", "write what follows `/c` as the command"),
        ("npx.cmd", "leave it out elsewhere"),
        (r"C:\Tools\server.exe", "leave it out elsewhere"),
    ] {
        let program = Program::new(command).args(["/c", "npx"]).env("PATH", path);
        let reason = refused(&program);
        assert!(reason.ends_with(hint), "{reason}");
    }
}

#[tokio::test]
async fn a_bad_directory_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for cwd in [
        file.path(),
        std::path::Path::new("/plexus/no/such/directory"),
    ] {
        let expected = format!(
            "cannot start `cat` in {}: it is no directory that can be entered",
            cwd.display()
        );
        assert_eq!(refused(&Program::new("cat").cwd(cwd)), expected);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_run_is_told_from_a_missing_one() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("server");
    std::fs::write(&script, "#!/plexus/no/such/interpreter\n").unwrap();
    let program = Program::new(script.to_str().unwrap());
    assert!(matches!(
        start_error(&program),
        StartError::NotPermitted { .. }
    ));

    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(
        start_error(&program),
        StartError::NoInterpreter { .. }
    ));

    let impossible = start_error(&sh("true").arg("a\0b"));
    assert!(
        matches!(impossible, StartError::System { .. }),
        "{impossible:?}"
    );
}

#[test]
fn a_program_shows_its_command_line_but_no_secret() {
    let program = Program::new("npx")
        .args(["-y", "@scope/server@1.2", "it's", "", "a b", "$HOME"])
        .env("TOKEN", "hunter2")
        .cwd("/tmp");
    assert_eq!(
        program.to_string(),
        r"npx -y @scope/server@1.2 'it'\''s' '' 'a b' '$HOME'"
    );
    let debug = format!("{program:?}");
    assert!(
        debug.contains("TOKEN") && !debug.contains("hunter2"),
        "{debug}"
    );
}

#[tokio::test]
async fn reports_how_it_ended() {
    let mut running = Running::of(&sh("exit 3"));
    let report = within(running.child.exited()).await;
    assert_eq!(report, ExitReport::Code(3));
    assert_eq!(report.to_string(), "exited with code 3");
    assert_eq!(
        within(running.child.exited()).await,
        report,
        "a second call reports again"
    );

    let mut running = Running::of(&sh("kill -KILL $$"));
    let report = within(running.child.exited()).await;
    assert_eq!(report, ExitReport::Signal(9));
    assert_eq!(report.to_string(), "was killed by signal 9 (SIGKILL)");
}

/// S004-31: the reason of an early end can be shown, with the exit.
#[tokio::test]
async fn the_stderr_tail_is_complete_when_the_end_is_reported() {
    let script = r"echo starting >&2; printf 'bad \377 byte\r\nno config' >&2; exit 1";
    let mut running = Running::of(&sh(script));
    assert_eq!(within(running.child.exited()).await, ExitReport::Code(1));
    assert_eq!(
        running.child.stderr_tail(),
        ["starting", "bad \u{fffd} byte", "no config"]
    );
}

/// The end of the program is reported, although its own child still holds its standard error.
#[tokio::test]
async fn a_left_process_does_not_hide_the_end() {
    let mut running = Running::of(&sh("sleep 1000 & echo gone >&2; exit 4"));
    assert_eq!(within(running.child.exited()).await, ExitReport::Code(4));
    assert_eq!(running.child.stderr_tail(), ["gone"]);
}

#[tokio::test]
async fn a_prompt_without_line_break_is_shown() {
    let running = Running::of(&sh("echo hello >&2; printf 'Token: ' >&2; cat"));
    until("the prompt", || {
        running.child.stderr_tail() == ["hello", "Token: "]
    })
    .await;
}

#[tokio::test]
async fn keeps_the_last_lines_of_many() {
    let running = Running::of(&sh("seq 100000 >&2"));
    let expected: Vec<_> = (100_001 - STDERR_TAIL_MAX_LINES..=100_000)
        .map(|line| line.to_string())
        .collect();
    assert_eq!(running.whole_stderr().await, expected);
}

/// S001-D09.
#[tokio::test]
async fn keeps_a_bounded_number_of_bytes() {
    // The lines exceed the total limit, but neither the limit of lines nor the limit of one line.
    let running = Running::of(&sh(
        "for i in $(seq 64); do printf '%01000d\\n' $i; done >&2",
    ));
    let tail = running.whole_stderr().await;
    assert_eq!(tail.len(), STDERR_TAIL_MAX_BYTES / 1000);
    assert!(tail.last().unwrap().ends_with("0064"));
}

#[tokio::test]
async fn cuts_an_endless_line() {
    let script = "head -c 10000000 /dev/zero | tr '\\0' x >&2; printf '\\nafter' >&2";
    let running = Running::of(&sh(script));
    assert_eq!(
        running.whole_stderr().await,
        ["x".repeat(STDERR_LINE_MAX_BYTES), "after".to_owned()]
    );
}

#[tokio::test]
async fn cuts_between_characters() {
    let script = "printf x >&2; yes 🦀 | head -n 5000 | tr -d '\\n' >&2";
    let running = Running::of(&sh(script));
    let whole = (STDERR_LINE_MAX_BYTES - 1) / "🦀".len();
    assert_eq!(
        running.whole_stderr().await,
        [format!("x{}", "🦀".repeat(whole))]
    );
}

/// LIFE-11, STDIO-12, S004-35: a program that exits when its input ends gets no signal.
#[tokio::test]
async fn the_end_of_the_input_is_no_signal() {
    let mut running = Running::of(&sh("trap 'exit 9' TERM; echo ready; cat; exit 7"));
    assert_eq!(running.line().await, "ready");
    let Running { child, input, .. } = running;
    drop(input);
    assert_eq!(child.stop(LONG_GRACE).await, ExitReport::Code(7));
}

/// S001-54: for programs such as `server-postgres`, which do not exit when their input ends.
#[tokio::test]
async fn sigterm_follows_when_the_input_is_not_heeded() {
    let script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
    let mut running = Running::of(&sh(script));
    assert_eq!(running.line().await, "ready");
    let Running {
        child,
        input,
        mut output,
    } = running;
    drop(input);
    assert_eq!(
        child.stop(Grace::new(SHORT_TIMEOUT, TEST_TIMEOUT)).await,
        ExitReport::Code(5)
    );
    let mut rest = String::new();
    within(output.read_to_string(&mut rest)).await.unwrap();
    assert_eq!(rest, "bye\n");
}

/// S001-54, S004-35: SIGKILL is the last step, after both grace periods.
#[tokio::test]
async fn sigkill_ends_what_ignores_everything() {
    let mut running = Running::of(&sh(STUBBORN_TREE));
    let grandchild = running.pid().await;
    let Running { child, input, .. } = running;
    drop(input);
    let start = Instant::now();
    assert_eq!(
        child.stop(Grace::new(SHORT_TIMEOUT, SHORT_TIMEOUT)).await,
        ExitReport::Signal(9)
    );
    let took = start.elapsed();
    assert!(
        took >= 2 * SHORT_TIMEOUT && took < TEST_TIMEOUT / 2,
        "took {took:?}"
    );
    until("the end of the grandchild", || !runs(grandchild)).await;
}

/// `npx` exits at once on a signal; the server that it started still gets its grace period.
#[tokio::test]
async fn a_server_may_outlast_its_launcher_within_the_grace() {
    let script = "
        (
            trap 'while kill -0 $$; do sleep 0.01; done; echo saved; exit' TERM
            echo ready
            while :; do sleep 0.01; done
        ) &
        wait";
    let mut running = Running::of(&sh(script));
    assert_eq!(running.line().await, "ready");
    let Running {
        child,
        input,
        mut output,
    } = running;
    drop(input);
    assert_eq!(
        child.stop(Grace::new(SHORT_TIMEOUT, TEST_TIMEOUT)).await,
        ExitReport::Signal(15)
    );
    let mut rest = String::new();
    within(output.read_to_string(&mut rest)).await.unwrap();
    assert_eq!(rest, "saved\n");
}

/// S004-39, TRAP-30.
#[tokio::test]
async fn stop_ends_the_whole_tree() {
    let mut running = Running::of(&sh(TREE));
    let (child, grandchild) = (running.child_pid(), running.pid().await);
    let guard = getpgid(Some(child)).unwrap();
    let grace = Grace::new(SHORT_TIMEOUT, TEST_TIMEOUT);
    assert_eq!(running.child.stop(grace).await, ExitReport::Signal(15));
    assert!(
        !exists(child) && !exists(guard),
        "their exit statuses are collected"
    );
    until("the end of the grandchild", || !runs(grandchild)).await;
}

#[tokio::test]
async fn stop_ends_what_an_exited_program_left_behind() {
    let mut running = Running::of(&sh("sleep 1000 & echo $!"));
    let grandchild = running.pid().await;
    within(running.child.exited()).await;
    assert!(runs(grandchild));
    let report = running
        .child
        .stop(Grace::new(SHORT_TIMEOUT, SHORT_TIMEOUT))
        .await;
    assert_eq!(report, ExitReport::Code(0));
    until("the end of the grandchild", || !runs(grandchild)).await;
}

/// S001-50, S004-39: dropping is cancelling, and leaves neither processes nor zombies.
#[tokio::test]
async fn fifty_dropped_children_leave_nothing() {
    let mut children = Vec::new();
    for _ in 0..50 {
        let mut running = Running::of(&sh(STUBBORN_TREE));
        let (child, grandchild) = (running.child_pid(), running.pid().await);
        children.push((running, child, grandchild, getpgid(Some(child)).unwrap()));
    }
    let mut left = Vec::new();
    for (running, child, grandchild, guard) in children {
        assert!(runs(child) && runs(grandchild) && runs(guard));
        drop(running);
        left.push((child, grandchild, guard));
    }
    until("the end of all", || {
        left.iter().all(|&(child, grandchild, guard)| {
            !exists(child) && !exists(guard) && !runs(grandchild)
        })
    })
    .await;
}

/// A script that signals its own group, such as `trap 'kill 0' EXIT`, does not end the guard.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_guard_stays_when_the_group_is_sent_signals() {
    let script = "trap '' TERM INT HUP; read -r line; kill 0; kill -INT 0; kill -HUP 0; echo; cat";
    let mut running = Running::of(&sh(script));
    let child = running.child_pid();
    let guard = getpgid(Some(child)).unwrap();
    assert_ne!(guard, child);
    until("the guard's trap", || ignores(guard, Signal::TERM)).await;
    running.input.write_all(b"go\n").await.unwrap();
    running.line().await;
    assert!(runs(guard));
}

/// A container may have no shell. Then the group is killed with the child.
#[tokio::test]
async fn works_without_a_guard() {
    let no_shell = Path::new("/plexus/no/such/shell");
    let start = |script| Running::from(Child::start_guarded(&sh(script), no_shell).unwrap());

    let mut running = start(STUBBORN_TREE);
    let (child, grandchild) = (running.child_pid(), running.pid().await);
    assert_eq!(getpgid(Some(child)).unwrap(), child);
    drop(running);
    until("the end of both", || !exists(child) && !runs(grandchild)).await;

    let mut running = start("sleep 1000 & echo $!; exit 3");
    let grandchild = running.pid().await;
    assert_eq!(within(running.child.exited()).await, ExitReport::Code(3));
    until("the end of what was left behind", || !runs(grandchild)).await;
    assert_eq!(running.child.stop(LONG_GRACE).await, ExitReport::Code(3));
}

/// S001-66, S001-76, TRAP-31; issue "Connect to any MCP server", acceptance 2: after a SIGKILL of
/// Plexus, no process is left.
#[tokio::test]
async fn our_own_violent_death_takes_the_trees_along() {
    if std::env::var_os(VICTIM).is_some() {
        return start_trees_and_wait().await;
    }
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::our_own_violent_death_takes_the_trees_along");
    let this = std::env::current_exe().unwrap();
    let victim = Program::new(this.to_str().unwrap())
        .args([&test, "--exact", "--nocapture", "--test-threads=1"])
        .env(VICTIM, "1");
    let mut victim = Running::of(&victim);
    let pids: Vec<Pid> = loop {
        if let Some((_, pids)) = victim.line().await.split_once("trees: ") {
            break pids.split(' ').map(parse).collect();
        }
    };
    assert_eq!(pids.len(), 6);
    assert!(pids.iter().all(|pid| runs(*pid)));

    kill_process(victim.child_pid(), Signal::KILL).unwrap();
    assert_eq!(within(victim.child.exited()).await, ExitReport::Signal(9));
    until("the end of the trees", || {
        !pids.iter().any(|pid| runs(*pid))
    })
    .await;
}

/// Set when the test above runs itself again, as the process that is killed.
const VICTIM: &str = "PLEXUS_TEST_VICTIM";

async fn start_trees_and_wait() {
    let mut trees = Vec::new();
    let mut pids = Vec::new();
    for script in [TREE, STUBBORN_TREE] {
        let mut running = Running::of(&sh(script));
        let (child, grandchild) = (running.child_pid(), running.pid().await);
        pids.extend([child, grandchild, getpgid(Some(child)).unwrap()]);
        trees.push(running);
    }
    let pids: Vec<_> = pids
        .iter()
        .map(|pid| pid.as_raw_pid().to_string())
        .collect();
    println!("trees: {}", pids.join(" "));
    std::io::read_to_string(std::io::stdin()).unwrap();
}
