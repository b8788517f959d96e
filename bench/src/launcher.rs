//! Starts the processes of a round.

use std::cell::Cell;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

use crate::placement::{Affinity, Cores, Placement, Seat};
use crate::process::{Program, Running};

/// Starts processes, each in a folder of its own.
#[derive(Debug)]
pub(crate) struct Launcher {
    cores: Cores,
    placement: Placement,
    folder: tempfile::TempDir,
    started: Cell<usize>,
}

/// A process that listens on an address.
#[derive(Debug)]
pub(crate) struct ListeningProcess {
    pub(crate) process: Running,
    pub(crate) address: SocketAddr,
}

impl Launcher {
    pub(crate) fn new(cores: Cores) -> anyhow::Result<Self> {
        Ok(Self {
            cores,
            placement: Placement::AllCores,
            folder: tempfile::tempdir()?,
            started: Cell::new(0),
        })
    }

    /// Chooses the cores of the load generator, and of all processes that are started from now on.
    pub(crate) fn place(&mut self, placement: Placement) -> anyhow::Result<()> {
        self.cores.place_generator(placement)?;
        self.placement = placement;
        Ok(())
    }

    pub(crate) fn placement(&self) -> Placement {
        self.placement
    }

    pub(crate) fn affinity(&self, seat: Seat) -> Affinity {
        self.cores.of(seat, self.placement)
    }

    /// Starts a program with `{port}` in its arguments, and waits until it listens.
    pub(crate) fn listen(&self, program: &Program, seat: Seat) -> anyhow::Result<ListeningProcess> {
        self.listen_as(seat, |address| {
            Ok(program.with("port", &address.port().to_string()))
        })
    }

    /// Like `listen`, for a program whose command line is made from its address.
    pub(crate) fn listen_as(
        &self,
        seat: Seat,
        program: impl FnOnce(SocketAddr) -> anyhow::Result<Program>,
    ) -> anyhow::Result<ListeningProcess> {
        let address = free_address()?;
        let program = program(address)?;
        let mut process = self.start(&program, seat)?;
        process.wait_until(|| TcpStream::connect(address).is_ok())?;
        Ok(ListeningProcess { process, address })
    }

    /// Starts a program in a folder of its own.
    pub(crate) fn start(&self, program: &Program, seat: Seat) -> anyhow::Result<Running> {
        program.start(self.affinity(seat), &self.new_folder())
    }

    /// A folder that does not exist yet.
    pub(crate) fn new_folder(&self) -> PathBuf {
        self.started.set(self.started.get() + 1);
        self.folder.path().join(self.started.get().to_string())
    }
}

/// An unused address. If another process takes it first, the start fails.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}
