//! A pseudo-terminal for tests of commands at a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::home::Home;
use crate::process::{TEST_TIMEOUT, plexus};

/// The program, running at a pseudo-terminal.
pub(crate) struct TerminalSession {
    child: Child,
    keyboard: File,
    screen: Receiver<String>,
    seen: String,
}

impl TerminalSession {
    /// Starts the program in the project of a home directory, at a terminal with this many columns.
    pub(crate) fn start(home: &Home, columns: u16, arguments: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let size = Winsize {
            ws_row: 40,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&ours, size).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = || -> Stdio {
            let flags = OFlags::RDWR | OFlags::NOCTTY;
            open(&name, flags, Mode::empty()).unwrap().into()
        };
        let mut command = plexus(arguments);
        command
            .current_dir(home.path("project"))
            .env("HOME", home.path(""))
            .env("PLEXUS_DATA_DIR", home.path("data"))
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .env_remove("XDG_CONFIG_HOME")
            .stdin(theirs())
            .stdout(theirs())
            .stderr(theirs());
        let child = command.spawn().unwrap();
        // Our copies of the terminal must be closed, so that its end is seen when the program
        // exits.
        drop(command);
        let keyboard = File::from(ours.try_clone().unwrap());
        Self {
            child,
            keyboard,
            screen: shown(ours),
            seen: String::new(),
        }
    }

    /// Waits until this text was shown.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let more = self.screen.recv_timeout(TEST_TIMEOUT);
            let more = more.ok();
            assert!(
                more.is_some(),
                "{text:?} was not shown, but {:?}",
                self.seen
            );
            self.seen.push_str(&more.unwrap());
        }
        // Text after it is kept for the next call.
        let (_, rest) = self.seen.split_once(text).unwrap();
        self.seen = rest.to_owned();
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Sends SIGINT, since the pseudo-terminal is not the controlling terminal of the program.
    pub(crate) fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Waits for the exit; returns the exit code and the output since the last call.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        while let Ok(more) = self.screen.recv_timeout(TEST_TIMEOUT) {
            self.seen.push_str(&more);
        }
        let code = self.child.wait().unwrap().code();
        (code, std::mem::take(&mut self.seen))
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        // Both fail if the process has exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The output, read by a separate thread until the terminal is closed.
fn shown(terminal: OwnedFd) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut terminal = File::from(terminal);
        let (mut piece, mut unread) = ([0; 4096], Vec::new());
        while let Ok(length @ 1..) = terminal.read(&mut piece) {
            unread.extend_from_slice(&piece[..length]);
            // A chunk may end within a character; the rest of the character is in the next chunk.
            let Ok(text) = String::from_utf8(unread.clone()) else {
                continue;
            };
            unread.clear();
            if sender.send(text).is_err() {
                break;
            }
        }
    });
    receiver
}
