//! Measured processes: each is started on its own core, observed through `/proc`, and ended with
//! its child processes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::CpuSet;
use tokio::time::Instant;

use crate::load::READY_TIMEOUT;

/// The core of each process. Each has one core, so that the comparison is of work, not of threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cores {
    /// The number of cores.
    pub(crate) count: usize,
    /// The core of the measured process.
    pub(crate) subject: usize,
    /// The core of the servers behind a measured gateway.
    pub(crate) upstream: usize,
}

impl Cores {
    /// Takes the first cores that this process may use, and pins the generator to one of them.
    pub(crate) fn take() -> anyhow::Result<Self> {
        let allowed = rustix::thread::sched_getaffinity(None)?;
        let cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let cores: Vec<_> = cores.collect();
        let count = cores.len();
        let mut cores = cores.into_iter();
        let subject = cores.next().context("no core to run on")?;
        let generator = cores.next().unwrap_or(subject);
        let upstream = cores.next().unwrap_or(generator);
        stay_on(generator)?;
        Ok(Self {
            count,
            subject,
            upstream,
        })
    }
}

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

    /// The command line that starts the program pinned to a core.
    pub(crate) fn on_core(&self, core: usize) -> anyhow::Result<Self> {
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
        if let Err(error) = stay_on(core) {
            return error;
        }
        Command::new(&self.path).args(&self.arguments).exec().into()
    }

    /// Starts the program on `core`, in the empty folder `home`, with pipes for stdin and stdout.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the benchmark starts processes; it ends their whole group"
    )]
    pub(crate) fn start(&self, core: usize, home: &Path) -> anyhow::Result<Running> {
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
        stay_on(core)?;
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

/// CPU time of the threads that a process has now.
pub(crate) fn cpu_time(process: u32) -> anyhow::Result<Duration> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).context("the process is gone")?;
    let mut spent = 0;
    for thread in threads {
        // In nanoseconds, unlike the ticks in `stat`, which are too coarse for a short window. A
        // thread may end meanwhile.
        let times = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        let running = times.split_ascii_whitespace().next();
        spent += running.and_then(|time| time.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(spent))
}

/// The number of descendants of `ancestor` that run this command line.
pub(crate) fn count_descendants(ancestor: u32, program: &Program) -> anyhow::Result<usize> {
    let mut command = program.path.display().to_string();
    for argument in &program.arguments {
        command.push('\0');
        command.push_str(argument);
    }
    let mut parents = HashMap::new();
    let mut running = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process may end meanwhile.
        let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).ok();
        let stat = read("stat").unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let parent = fields.split_ascii_whitespace().nth(1);
        let parent = parent.and_then(|parent| parent.parse::<u32>().ok());
        parents.insert(process, parent.unwrap_or(0));
        if read("cmdline").unwrap_or_default().trim_end_matches('\0') == command {
            running.push(process);
        }
    }
    let descends = |process: &u32| {
        let mut process = *process;
        while let Some(&parent) = parents.get(&process) {
            if parent == ancestor {
                return true;
            }
            process = parent;
        }
        false
    };
    Ok(running.iter().filter(|process| descends(process)).count())
}

/// Memory of a process in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// Resident memory.
    pub(crate) resident: u64,
    /// Peak resident memory.
    pub(crate) peak: u64,
}

impl Memory {
    /// Resets the peak.
    pub(crate) fn forget_peak(process: u32) -> anyhow::Result<()> {
        fs::write(format!("/proc/{process}/clear_refs"), "5").context("the peak stays")
    }

    pub(crate) fn of(process: u32) -> anyhow::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
            Some(kib * 1024)
        };
        Ok(Self {
            resident: bytes("VmRSS:").context("no VmRSS")?,
            peak: bytes("VmHWM:").context("no VmHWM")?,
        })
    }
}

/// Blocks the thread for `time`.
#[expect(clippy::disallowed_methods, reason = "there is no runtime to block")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

fn stay_on(core: usize) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set).context("cannot choose a core")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeping(home: &Path) -> (Program, Running) {
        let program = Program::new("sleep", &["600"]);
        let running = program.start(Cores::take().unwrap().subject, home).unwrap();
        (program, running)
    }

    #[test]
    fn a_process_ends_with_what_it_stands_for() {
        let home = tempfile::tempdir().unwrap();
        let (_, running) = sleeping(home.path());
        let process = running.id();
        assert!(Memory::of(process).unwrap().resident > 0);
        drop(running);
        assert!(cpu_time(process).is_err());
    }

    #[test]
    fn processes_are_counted_below_their_ancestor_only() {
        let home = tempfile::tempdir().unwrap();
        let (program, mut running) = sleeping(home.path());
        let count = |ancestor| count_descendants(ancestor, &program).unwrap();
        // The child has the command line of the test until it has called exec.
        running
            .wait_until(|| count(std::process::id()) == 1)
            .unwrap();
        assert_eq!(count(running.id()), 0);
    }

    #[test]
    fn a_process_that_ends_is_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let mut running = Program::new("cat", &["nothing"])
            .start(Cores::take().unwrap().subject, home.path())
            .unwrap();
        let failed = running.wait_until(|| false).unwrap_err().to_string();
        assert!(
            failed.starts_with("the process ended at once: "),
            "{failed}"
        );
        assert!(failed.contains("nothing"), "{failed}");
    }

    #[test]
    fn work_costs_time() {
        let before = cpu_time(std::process::id()).unwrap();
        let began = Instant::now();
        while cpu_time(std::process::id()).unwrap() == before {
            assert!(began.elapsed() < READY_TIMEOUT);
        }
    }
}
