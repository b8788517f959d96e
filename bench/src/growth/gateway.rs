//! Starts gateways, each with a home folder of its own.

use std::cell::Cell;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use super::client::Client;

/// How long a gateway may take to listen, and to have the tools of its servers.
const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// How long a gateway may take to end its servers.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A file system in memory, so that databases do not measure the disk.
const MEMORY_FOLDER: &str = "/dev/shm";

/// Starts gateways in a temporary folder.
#[derive(Debug)]
pub(super) struct Gateways {
    plexus: PathBuf,
    /// This program, which is also the upstream server.
    bench: PathBuf,
    folder: TempDir,
    max: u32,
    homes: Cell<u32>,
}

/// The home folder of a gateway.
#[derive(Debug, Clone)]
pub(super) struct Home(PathBuf);

/// A running gateway, which is ended with its servers when this is dropped.
#[derive(Debug)]
pub(super) struct Gateway {
    child: Child,
    pub(super) address: SocketAddr,
    pub(super) started: Instant,
}

impl Gateways {
    pub(super) fn new(plexus: PathBuf, max: u32) -> anyhow::Result<Self> {
        let memory = Path::new(MEMORY_FOLDER);
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)?
        } else {
            tempfile::tempdir()?
        };
        Ok(Self {
            plexus,
            bench: std::env::current_exe()?,
            folder,
            max,
            homes: Cell::new(0),
        })
    }

    /// The sizes to measure, of these.
    pub(super) fn sizes<'a>(&self, sizes: &'a [u32]) -> impl Iterator<Item = u32> + use<'a> {
        let max = self.max;
        sizes.iter().copied().filter(move |&size| size <= max)
    }

    /// A new home folder with these settings.
    pub(super) fn home(&self, settings: &str) -> anyhow::Result<Home> {
        self.homes.set(self.homes.get() + 1);
        let home = self.folder.path().join(self.homes.get().to_string());
        let config = home.join(".config/plexus");
        fs::create_dir_all(&config)?;
        fs::write(config.join("plexus.toml"), settings)?;
        Ok(Home(home))
    }

    /// Starts a gateway without servers.
    pub(super) fn start(&self, home: &Home) -> anyhow::Result<Gateway> {
        self.start_with(home, 0, 0)
    }

    /// Starts a gateway with so many servers, each of which has so many tools.
    #[expect(
        clippy::disallowed_methods,
        reason = "the process is ended with its children when the gateway is dropped"
    )]
    pub(super) fn start_with(
        &self,
        home: &Home,
        servers: u32,
        tools: u32,
    ) -> anyhow::Result<Gateway> {
        let Home(home) = home;
        let entry = json!({
            "command": self.bench,
            "args": ["growth-upstream", tools.to_string()],
        });
        let entries: Map<String, Value> = (0..servers)
            .map(|number| (format!("up{number}"), entry.clone()))
            .collect();
        let file = home.join("servers.json");
        fs::write(&file, json!({"mcpServers": entries}).to_string())?;
        let log = home.join("stderr.log");
        let mut command = Command::new(&self.plexus);
        command
            .args(["serve", "--http", "127.0.0.1:0"])
            // Also with servers: some measurements compare both.
            .args(["--builtin", "health,echo,task,context", "--mcp-config"])
            .arg(&file)
            .current_dir(home)
            .env("HOME", home)
            .env("PLEXUS_DATA_DIR", home.join("data"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CONTEXTGRAPH_DB")
            .env_remove("BOSSMAN_DB_PATH")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .process_group(0);
        let started = Instant::now();
        let child = command.spawn().context("cannot start plexus")?;
        let mut gateway = Gateway {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            started,
        };
        gateway.address = gateway.wait_for_address(&log)?;
        Ok(gateway)
    }
}

impl Home {
    /// The folder of the databases.
    pub(super) fn data(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Gateway {
    /// The address that the gateway prints when it listens.
    fn wait_for_address(&mut self, log: &Path) -> anyhow::Result<SocketAddr> {
        loop {
            let text = fs::read_to_string(log)?;
            let url = text.split_once("listening on http://").map(|(_, url)| url);
            if let Some((address, _)) = url.and_then(|url| url.split_once('/')) {
                return Ok(address.parse()?);
            }
            let ended = self.child.try_wait()?;
            ensure!(ended.is_none(), "the gateway ended at once: {text}");
            ensure!(
                self.started.elapsed() < READY_TIMEOUT,
                "the gateway does not listen: {text}"
            );
            pause(Duration::from_millis(2));
        }
    }

    /// Waits until a client sees so many tools of the servers. Returns the time since the start, in seconds.
    pub(super) fn wait_for_tools(&self, client: &mut Client, tools: u32) -> anyhow::Result<f64> {
        loop {
            let listed = client.count_tools()?;
            let elapsed = self.started.elapsed();
            if listed >= tools {
                return Ok(elapsed.as_secs_f64());
            }
            ensure!(elapsed < READY_TIMEOUT, "{listed} tools instead of {tools}");
            pause(Duration::from_millis(10));
        }
    }

    /// Resident memory in KiB.
    pub(super) fn memory_kib(&self) -> anyhow::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_ascii_whitespace().next());
        Ok(kib.context("no VmRSS")?.parse()?)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let Some(group) = group else {
            return;
        };
        // The gateway ends its servers itself, unless it is killed.
        rustix::process::kill_process(group, Signal::TERM).ok();
        let began = Instant::now();
        while began.elapsed() < END_TIMEOUT {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            pause(Duration::from_millis(5));
        }
        rustix::process::kill_process_group(group, Signal::KILL).ok();
        drop(self.child.wait());
    }
}

/// Blocks the thread for a time.
#[expect(clippy::disallowed_methods, reason = "there is no runtime to block")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
