//! Requests of the system, or of a person at the keyboard, to end.

use std::io;
use std::process::ExitCode;

/// A signal that asks the process to end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    /// Somebody pressed Ctrl-C.
    Interrupt,
    /// Somebody else wants us gone.
    #[cfg(unix)]
    Terminate,
}

impl Ending {
    /// What shells expect of a process that a signal ended.
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Interrupt => ExitCode::from(128 + 2),
            #[cfg(unix)]
            Self::Terminate => ExitCode::from(128 + 15),
        }
    }
}

/// Takes signals that would end the process otherwise.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Takes them from now on.
    pub(crate) fn take() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self {
            interrupt,
            terminate,
        })
    }

    /// Waits for the next one. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Ending {
        tokio::select! {
            _ = self.interrupt.recv() => Ending::Interrupt,
            _ = self.terminate.recv() => Ending::Terminate,
        }
    }
}

/// Takes Ctrl-C, which would end the process otherwise.
#[cfg(windows)]
#[derive(Debug)]
pub(crate) struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    /// Takes it from now on.
    pub(crate) fn take() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    /// Waits for the next one. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Ending {
        self.0.recv().await;
        Ending::Interrupt
    }
}
