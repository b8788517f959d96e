//! `plexus status --watch`: shows changes.

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use super::{StatusOutput, text};
use crate::control;
use crate::gateway::ServerReport;
use crate::output::{self, as_json, is_read, print, print_while_read};
use crate::printable::{Printable, TerminalControl};
use crate::runtime;
use crate::session::{ConfigArgs, Session};
use crate::signals::Signals;
use crate::terminal::Canvas;

/// How often the status is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The status that was shown last.
pub(super) struct Watch {
    json: bool,
    is_terminal: bool,
    /// The line of every server, by its gateway and its name.
    lines: HashMap<(Option<u32>, String), String>,
    /// The text on the screen.
    screen: Printable,
}

/// A server that changed.
#[derive(Serialize)]
struct ChangedServer<'a> {
    /// The process id of its gateway.
    gateway: Option<u32>,
    /// Its status; `None` if it was removed.
    server: Option<&'a ServerReport>,
    name: &'a str,
}

impl Watch {
    /// Watches the running gateways until a signal arrives.
    pub(super) fn running(&mut self) -> anyhow::Result<ExitCode> {
        runtime::on_runtime(async {
            let mut signals = Signals::take().context("cannot wait for signals")?;
            loop {
                let output = tokio::task::spawn_blocking(StatusOutput::running).await?;
                if !self.show(&output)? || !is_read() {
                    return Ok(ExitCode::SUCCESS);
                }
                tokio::select! {
                    () = tokio::time::sleep(POLL_INTERVAL) => {}
                    signal = signals.next() => return Ok(signal.exit_code()),
                }
            }
        })
    }

    /// Watches our own servers until the future is dropped, or a gateway is running, unless `config`
    /// names files. Returns whether a gateway is running.
    pub(super) async fn own(
        &mut self,
        session: &Session,
        config: &ConfigArgs,
    ) -> anyhow::Result<bool> {
        while self.show(&StatusOutput::own(session, config).await)? && is_read() {
            tokio::time::sleep(POLL_INTERVAL).await;
            if config.mcp_config.is_empty() && is_gateway_running().await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn new(json: bool) -> Self {
        Self {
            json,
            is_terminal: !json && output::is_terminal(),
            lines: HashMap::new(),
            screen: Printable::default(),
        }
    }

    /// Shows changes; returns whether the output is still open.
    fn show(&mut self, output: &StatusOutput) -> anyhow::Result<bool> {
        if self.is_terminal {
            let screen = screen(output);
            if screen != self.screen {
                // Moves to the top and clears the screen.
                print(Printable::from(TerminalControl::ClearScreen) + screen.clone())?;
                self.screen = screen;
            }
            return Ok(true);
        }
        let mut gone = std::mem::take(&mut self.lines);
        for gateway in &output.gateways {
            for server in &gateway.servers {
                let key = (gateway.pid, server.name.clone());
                let line = text::line(server);
                let is_new = gone.remove(&key).is_none_or(|before| before != line);
                if is_new && !self.print(gateway.pid, &server.name, Some(server))? {
                    return Ok(false);
                }
                self.lines.insert(key, line);
            }
        }
        let mut gone: Vec<_> = gone.into_keys().collect();
        gone.sort_unstable();
        for (gateway, name) in gone {
            if !self.print(gateway, &name, None)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn print(
        &self,
        gateway: Option<u32>,
        name: &str,
        server: Option<&ServerReport>,
    ) -> anyhow::Result<bool> {
        let line = if self.json {
            as_json(&ChangedServer {
                gateway,
                server,
                name,
            })?
        } else {
            let gateway = gateway.map_or_else(String::new, |pid| format!("{pid}: "));
            let line = server.map_or_else(|| format!("{name}: gone"), text::line);
            format!("{gateway}{line}\n")
        };
        Ok(print_while_read(&line)?)
    }
}

async fn is_gateway_running() -> anyhow::Result<bool> {
    let running = tokio::task::spawn_blocking(|| !control::running().is_empty());
    Ok(running.await?)
}

/// As much as fits on the screen.
fn screen(output: &StatusOutput) -> Printable {
    let text = text::rendered(output, Canvas::output(), true);
    let height = Canvas::output().height();
    let lines: Vec<_> = text.lines().collect();
    if lines.len() < height {
        return text;
    }
    let shown = height.saturating_sub(2);
    let more = lines.len() - shown;
    let shown = lines.into_iter().take(shown).map(|line| line + "\n");
    shown.collect::<Printable>() + format!("({more} more lines)\n")
}
