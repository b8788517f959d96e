//! Measured processes: each is started in a folder of its own, and ended with its child processes.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use tokio::time::Instant;

use crate::load::READY_TIMEOUT;
use crate::placement::Affinity;

/// Raises the limit of open files, for this process and its children, to the maximum.
pub(crate) fn allow_many_files() -> usize {
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    // If this fails, the old limit is returned.
    rustix::process::setrlimit(Resource::Nofile, wanted).ok();
    let current = rustix::process::getrlimit(Resource::Nofile).current;
    current.map_or(usize::MAX, |files| {
        usize::try_from(files).unwrap_or(usize::MAX)
    })
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
}

impl Program {
    pub(crate) fn new(path: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        let program = Self {
            path: path.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
        };
        program.and(arguments)
    }

    /// Returns the program with further arguments.
    pub(crate) fn and(&self, arguments: &[&str]) -> Self {
        let mut program = self.clone();
        let arguments = arguments.iter().map(|&argument| argument.to_owned());
        program.arguments.extend(arguments);
        program
    }

    /// Returns the program with `{name}` replaced by `value` in its arguments.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut program = self.clone();
        for argument in &mut program.arguments {
            *argument = argument.replace(&format!("{{{name}}}"), value);
        }
        program
    }

    /// The command line that starts the program on these cores, for a program that is started by
    /// the subject.
    pub(crate) fn on(&self, affinity: Affinity) -> anyhow::Result<Self> {
        let Affinity::One(core) = affinity else {
            return Ok(self.clone());
        };
        // Without `--` before the program: some gateways would parse it as their own.
        let mut arguments = vec!["on-core".to_owned(), core.to_string()];
        arguments.push(self.path.display().to_string());
        arguments.extend(self.arguments.iter().cloned());
        Ok(Self {
            path: std::env::current_exe()?,
            arguments,
            environment: self.environment.clone(),
        })
    }

    /// Replaces this process by the program, pinned to `core` (exec). Returns only if that fails.
    #[expect(
        clippy::disallowed_methods,
        reason = "no process is started; this one becomes another"
    )]
    pub(crate) fn become_on(&self, core: usize) -> anyhow::Error {
        if let Err(error) = Affinity::One(core).take() {
            return error;
        }
        Command::new(&self.path).args(&self.arguments).exec().into()
    }

    /// Starts the program on these cores, in the folder `home`, with pipes for stdin and stdout.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the benchmark starts processes; it ends their whole group"
    )]
    pub(crate) fn start(&self, affinity: Affinity, home: &Path) -> anyhow::Result<Running> {
        fs::create_dir_all(home)?;
        let log = home.join("stderr.log");
        let mut command = Command::new(&self.path);
        command
            .args(&self.arguments)
            .current_dir(home)
            .env("HOME", home)
            .env("PLEXUS_DATA_DIR", home.join("data"))
            .env_remove("XDG_CONFIG_HOME")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .process_group(0);
        let back = rustix::thread::sched_getaffinity(None)?;
        affinity.take()?;
        let started = Instant::now();
        let child = command.spawn();
        rustix::thread::sched_setaffinity(None, &back)?;
        let child = child.with_context(|| format!("cannot start {}", self.path.display()))?;
        Ok(Running {
            child,
            started,
            log,
        })
    }
}

/// A running process, which is ended with its child processes when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pub(crate) started: Instant,
    log: PathBuf,
}

/// Our ends of a process's standard input and output.
pub(crate) struct Pipes {
    pub(crate) input: Box<dyn Write>,
    pub(crate) output: Box<dyn Read>,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes the pipes. They can be taken once.
    pub(crate) fn pipes(&mut self) -> anyhow::Result<Pipes> {
        let input = self.child.stdin.take().context("the pipe is taken")?;
        let output = self.child.stdout.take().context("the pipe is taken")?;
        Ok(Pipes {
            input: Box::new(input),
            output: Box::new(output),
        })
    }

    /// Waits until `ready` holds.
    ///
    /// # Errors
    /// The process ended, or took too long. The error has its standard error output.
    pub(crate) fn wait_until(&mut self, ready: impl Fn() -> bool) -> anyhow::Result<()> {
        let began = Instant::now();
        while !ready() {
            let ended = self.child.try_wait()?;
            ensure!(
                ended.is_none(),
                "the process ended at once: {}",
                self.stderr_tail()
            );
            ensure!(
                began.elapsed() < READY_TIMEOUT,
                "it is not ready after {READY_TIMEOUT:?}: {}",
                self.stderr_tail()
            );
            pause(Duration::from_millis(2));
        }
        Ok(())
    }

    /// The last lines that the process wrote to standard error.
    pub(crate) fn stderr_tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(8).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(id) = i32::try_from(self.child.id())
            && let Some(group) = Pid::from_raw(id)
        {
            // The process group may have ended already.
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
        drop(self.child.wait());
    }
}

/// Blocks the thread for `time`.
#[expect(clippy::disallowed_methods, reason = "there is no runtime to block")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{Cores, Placement, Seat};
    use crate::usage::memory_of;

    fn start(program: &Program, home: &Path) -> Running {
        let affinity = Cores::find().unwrap().of(Seat::Subject, Placement::OneCore);
        program.start(affinity, home).unwrap()
    }

    #[test]
    fn a_process_ends_with_what_it_stands_for() {
        let home = tempfile::tempdir().unwrap();
        let running = start(&Program::new("sleep", &["600"]), home.path());
        let process = running.id();
        assert!(memory_of(process).unwrap().resident > 0);
        drop(running);
        memory_of(process).unwrap_err();
    }

    #[test]
    fn a_process_that_ends_is_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let mut running = start(&Program::new("cat", &["nothing"]), home.path());
        let failed = running.wait_until(|| false).unwrap_err().to_string();
        assert!(
            failed.starts_with("the process ended at once: "),
            "{failed}"
        );
        assert!(failed.contains("nothing"), "{failed}");
    }

    #[test]
    fn a_program_is_wrapped_only_to_pin_it() {
        let cores = Cores::find().unwrap();
        let program = Program::new("server", &["stdio"]);
        let everywhere = program.on(cores.of(Seat::Upstream, Placement::AllCores));
        assert_eq!(everywhere.unwrap(), program);
        let pinned = program.on(Affinity::One(3)).unwrap();
        assert_eq!(pinned.arguments, ["on-core", "3", "server", "stdio"]);
    }
}
