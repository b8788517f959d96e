//! Signals that start a graceful shutdown.

use std::io;
#[cfg(unix)]
use std::io::IsTerminal;
use std::process::ExitCode;

#[cfg(unix)]
use crate::output;

/// A signal that asks the process to end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    /// Ctrl-C.
    Interrupt,
    /// A request of the system or of another process.
    #[cfg(unix)]
    Terminate,
}

impl Ending {
    /// The exit code that shells expect of a process that a signal ended.
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Interrupt => ExitCode::from(128 + 2),
            #[cfg(unix)]
            Self::Terminate => ExitCode::from(128 + 15),
        }
    }
}

/// Receives signals that would otherwise end the process.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Installs the handlers for SIGINT and SIGTERM.
    pub(crate) fn take() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self {
            interrupt,
            terminate,
        })
    }

    /// Waits for the next one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Ending {
        tokio::select! {
            _ = self.interrupt.recv() => Ending::Interrupt,
            _ = self.terminate.recv() => Ending::Terminate,
        }
    }
}

/// Receives SIGHUP, which asks a gateway to read its configuration again.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct ReloadSignals(tokio::signal::unix::Signal);

#[cfg(unix)]
impl ReloadSignals {
    /// Installs the handler; `None` at a terminal, which sends SIGHUP when it is closed: then the
    /// signal ends the process, as without a handler.
    pub(crate) fn take() -> io::Result<Option<Self>> {
        use tokio::signal::unix::{SignalKind, signal};

        if output::errors_are_at_terminal() || io::stdin().is_terminal() {
            return Ok(None);
        }
        Ok(Some(Self(signal(SignalKind::hangup())?)))
    }

    /// Waits for the next one, and returns whether there is one: there is none when the runtime shuts
    /// down. Cancel safe.
    pub(crate) async fn next(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

/// Receives Ctrl-C, which would otherwise end the process.
#[cfg(windows)]
#[derive(Debug)]
pub(crate) struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    /// Receives it from now on.
    pub(crate) fn take() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    /// Waits for the next one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Ending {
        self.0.recv().await;
        Ending::Interrupt
    }
}
