//! What changes about the servers, for as long as somebody looks.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use super::{Seen, text};
use crate::gateway::ServerReport;
use crate::output::{as_json, is_read, print, print_while_read};
use crate::runtime;
use crate::session::Session;
use crate::signals::Signals;
use crate::terminal::Canvas;

/// How often is looked.
const PAUSE: Duration = Duration::from_millis(500);

/// What was seen last.
struct Watch {
    json: bool,
    is_terminal: bool,
    /// The line of every server, by its gateway and its name.
    lines: HashMap<(Option<u32>, String), String>,
    /// What is on the screen.
    screen: String,
}

/// A server that changed.
#[derive(Serialize)]
struct Changed<'a> {
    /// The process of its gateway.
    gateway: Option<u32>,
    /// How it is doing; `None` if it is gone.
    server: Option<&'a ServerReport>,
    name: &'a str,
}

/// Watches the gateways that run, until a signal comes.
pub(super) fn running(json: bool) -> anyhow::Result<ExitCode> {
    runtime::on_runtime(async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let mut watch = Watch::new(json);
        loop {
            let seen = tokio::task::spawn_blocking(Seen::running).await?;
            if !watch.show(&seen)? || !is_read() {
                return Ok(ExitCode::SUCCESS);
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                signal = signals.next() => return Ok(signal.exit_code()),
            }
        }
    })
}

/// Watches our own servers, until it is dropped.
pub(super) async fn own(session: &Session, json: bool) -> anyhow::Result<ExitCode> {
    let mut watch = Watch::new(json);
    while watch.show(&Seen::own(session).await)? && is_read() {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(ExitCode::SUCCESS)
}

impl Watch {
    fn new(json: bool) -> Self {
        Self {
            json,
            is_terminal: !json && io::stdout().is_terminal(),
            lines: HashMap::new(),
            screen: String::new(),
        }
    }

    /// Shows what is new, and says whether anybody still looks.
    fn show(&mut self, seen: &Seen) -> anyhow::Result<bool> {
        if self.is_terminal {
            let screen = screen(seen);
            if screen != self.screen {
                // From the top, and nothing of what was there before.
                print(&format!("\u{1b}[H\u{1b}[J{screen}"))?;
                self.screen = screen;
            }
            return Ok(true);
        }
        let mut gone = std::mem::take(&mut self.lines);
        for gateway in &seen.gateways {
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
            as_json(&Changed {
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

/// As much as fits on the screen.
fn screen(seen: &Seen) -> String {
    let text = text::rendered(seen, Canvas::output(), true);
    let size = terminal_size::terminal_size_of(io::stdout());
    let height = size.map_or(usize::MAX, |(_, height)| usize::from(height.0));
    let lines: Vec<_> = text.lines().collect();
    if lines.len() < height {
        return text;
    }
    let shown = height.saturating_sub(2);
    let more = lines.len() - shown;
    let shown = lines.into_iter().take(shown).collect::<Vec<_>>().join("\n");
    format!("{shown}\n({more} more lines)\n")
}
