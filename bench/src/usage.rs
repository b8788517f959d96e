//! What processes and the machine use: CPU time, context switches and memory, from `/proc`.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use anyhow::Context as _;

use crate::process::Program;

/// A process and its descendants, as they were when this was made.
#[derive(Debug, Clone)]
pub(crate) struct ProcessTree {
    processes: Vec<u32>,
}

/// What the threads of a process tree used since they were started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    /// Voluntary context switches: how often a thread waited.
    pub(crate) switches: u64,
}

/// Memory in bytes. Pages that several processes share are counted for each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Resident memory.
    pub(crate) resident: u64,
    /// Peak resident memory: the sum of the peaks of all processes.
    pub(crate) peak: u64,
}

impl ProcessTree {
    /// Finds the descendants of a process by the parents of all processes.
    pub(crate) fn of(ancestor: u32) -> anyhow::Result<Self> {
        let parents = parents()?;
        let mut processes = vec![ancestor];
        let descendants = parents
            .keys()
            .filter(|&&process| descends(&parents, process, ancestor));
        processes.extend(descendants);
        Ok(Self { processes })
    }

    /// A process without its descendants.
    pub(crate) fn only(process: u32) -> Self {
        Self {
            processes: vec![process],
        }
    }

    /// The usage of all threads that run now. A process or thread that has ended is not counted.
    pub(crate) fn usage(&self) -> Usage {
        let mut used = Usage::default();
        for process in &self.processes {
            let threads = fs::read_dir(format!("/proc/{process}/task"));
            for thread in threads.into_iter().flatten().flatten() {
                let read = |file: &str| fs::read_to_string(thread.path().join(file));
                // In nanoseconds, unlike the ticks in `stat`, which are too coarse for a short
                // window.
                let times = read("schedstat").unwrap_or_default();
                let running = times.split_ascii_whitespace().next();
                let running = running.and_then(|time| time.parse().ok()).unwrap_or(0);
                used.cpu += Duration::from_nanos(running);
                let status = read("status").unwrap_or_default();
                used.switches += field(&status, "voluntary_ctxt_switches:").unwrap_or(0);
            }
        }
        used
    }

    /// The memory of all processes that run now.
    pub(crate) fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for process in &self.processes {
            let status = fs::read_to_string(format!("/proc/{process}/status"));
            let status = status.unwrap_or_default();
            let bytes = |name: &str| field(&status, name).unwrap_or(0) * 1024;
            memory.resident += bytes("VmRSS:");
            memory.peak += bytes("VmHWM:");
        }
        memory
    }

    /// Resets the peaks of memory.
    pub(crate) fn forget_peak(&self) -> anyhow::Result<()> {
        for process in &self.processes {
            fs::write(format!("/proc/{process}/clear_refs"), "5").context("the peak stays")?;
        }
        Ok(())
    }
}

impl Usage {
    /// What was used since `before`. Threads that ended meanwhile may have used more.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

/// The memory of a process and its descendants.
pub(crate) fn memory_of(process: u32) -> anyhow::Result<Memory> {
    let memory = ProcessTree::of(process)?.memory();
    anyhow::ensure!(memory.resident > 0, "the process is gone");
    Ok(memory)
}

/// The number of descendants of `ancestor` that run this command line.
pub(crate) fn count_descendants(ancestor: u32, program: &Program) -> anyhow::Result<usize> {
    let mut command = program.path.display().to_string();
    for argument in &program.arguments {
        command.push('\0');
        command.push_str(argument);
    }
    let runs_it = |process: &u32| {
        let started = fs::read_to_string(format!("/proc/{process}/cmdline"));
        started.unwrap_or_default().trim_end_matches('\0') == command
    };
    let tree = ProcessTree::of(ancestor)?;
    let descendants = tree.processes.iter().skip(1);
    Ok(descendants.filter(|process| runs_it(process)).count())
}

/// CPU time that all cores of the machine have spent, in user and kernel mode.
pub(crate) fn machine_cpu() -> anyhow::Result<Duration> {
    let ticks =
        busy_ticks(&fs::read_to_string("/proc/stat")?).context("no CPU time in /proc/stat")?;
    let ticks_per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_millis(ticks * 1000 / ticks_per_second))
}

/// The ticks in `/proc/stat` in which a core was neither idle nor taken by another virtual machine.
fn busy_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Option<Vec<u64>> = line
        .split_ascii_whitespace()
        .map(|ticks| ticks.parse().ok())
        .collect();
    // The time of guests is part of `user` and `nice`.
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = ticks?[..] else {
        return None;
    };
    Some(user + nice + system + irq + softirq)
}

/// The number in the line of a status file that begins with `name`.
fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

/// The parents of all processes.
fn parents() -> anyhow::Result<HashMap<u32, u32>> {
    let mut parents = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process may end meanwhile.
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name of the program, in parentheses, may have any characters.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let parent = fields.split_ascii_whitespace().nth(1);
        let parent = parent.and_then(|parent| parent.parse::<u32>().ok());
        parents.insert(process, parent.unwrap_or(0));
    }
    Ok(parents)
}

fn descends(parents: &HashMap<u32, u32>, mut process: u32, ancestor: u32) -> bool {
    // Processes start and end while the parents are read, so a chain might have a loop.
    for _ in 0..parents.len() {
        match parents.get(&process) {
            Some(&parent) if parent == ancestor => return true,
            Some(&parent) => process = parent,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::load::READY_TIMEOUT;
    use crate::placement::{Cores, Placement, Seat};
    use crate::process::Running;

    fn start(program: &Program, home: &std::path::Path) -> Running {
        let affinity = Cores::find()
            .unwrap()
            .of(Seat::Subject, Placement::AllCores);
        program.start(affinity, home).unwrap()
    }

    #[test]
    fn work_costs_time() {
        let own = ProcessTree::only(std::process::id());
        let before = own.usage();
        let began = Instant::now();
        while own.usage().cpu == before.cpu {
            assert!(began.elapsed() < READY_TIMEOUT);
        }
        assert!(own.usage().switches >= before.switches);
    }

    #[test]
    fn children_count_for_their_parent() {
        let home = tempfile::tempdir().unwrap();
        let program = Program::new("sleep", &["600"]);
        let mut running = start(&Program::new("sh", &["-c", "sleep 600; true"]), home.path());
        // The shell forks before it becomes `sleep`.
        let id = running.id();
        running
            .wait_until(|| count_descendants(id, &program).unwrap() == 1)
            .unwrap();
        assert_eq!(count_descendants(id, &Program::new("sh", &[])).unwrap(), 0);
        let tree = ProcessTree::of(id).unwrap();
        assert_eq!(tree.processes.len(), 2);
        let parent = ProcessTree::only(id);
        assert!(tree.memory().resident > parent.memory().resident);
        drop(running);
        memory_of(id).unwrap_err();
    }

    #[test]
    fn idle_time_and_stolen_time_are_not_spent() {
        let stat = "cpu  100 20 30 4000 500 6 7 800 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(busy_ticks(stat), Some(100 + 20 + 30 + 6 + 7));
        assert_eq!(busy_ticks("cpu  100 20 x 4000 500 6 7 800 9 10\n"), None);
        assert_eq!(busy_ticks("cpu  100 20\n"), None);
        assert_eq!(busy_ticks("intr 1 2 3\n"), None);
        assert!(machine_cpu().unwrap() > Duration::ZERO);
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status =
            "VmHWM:\t  2048 kB\nnonvoluntary_ctxt_switches:\t9\nvoluntary_ctxt_switches:\t7\n";
        assert_eq!(field(status, "voluntary_ctxt_switches:"), Some(7));
        assert_eq!(field(status, "VmHWM:"), Some(2048));
        assert_eq!(field(status, "VmRSS:"), None);
    }
}
