//! Commands at a terminal: a real one, of which the test is the screen and the keyboard.

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
use crate::process::{PATIENCE, plexus};

/// The program, running at a terminal.
pub(crate) struct AtTerminal {
    child: Child,
    keyboard: File,
    screen: Receiver<String>,
    seen: String,
}

impl AtTerminal {
    /// Starts it in the project of a home, at a terminal of so many columns.
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
        // The command keeps the other end open as long as it lives.
        drop(command);
        let keyboard = File::from(ours.try_clone().unwrap());
        Self {
            child,
            keyboard,
            screen: shown(ours),
            seen: String::new(),
        }
    }

    /// Waits until this was shown.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let more = self.screen.recv_timeout(PATIENCE);
            let more = more.ok();
            assert!(
                more.is_some(),
                "{text:?} was not shown, but {:?}",
                self.seen
            );
            self.seen.push_str(&more.unwrap());
        }
        // What comes next is another time.
        let (_, rest) = self.seen.split_once(text).unwrap();
        self.seen = rest.to_owned();
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Presses Ctrl-C. The program has no terminal of its own to get it from.
    pub(crate) fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Waits for the end; gives the exit code and what was shown since.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        while let Ok(more) = self.screen.recv_timeout(PATIENCE) {
            self.seen.push_str(&more);
        }
        let code = self.child.wait().unwrap().code();
        (code, std::mem::take(&mut self.seen))
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        // Both fail if the process has ended, as it should have.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What is shown, read by a thread of its own until nobody shows anything any more.
fn shown(terminal: OwnedFd) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut terminal = File::from(terminal);
        let (mut piece, mut unread) = ([0; 4096], Vec::new());
        while let Ok(length @ 1..) = terminal.read(&mut piece) {
            unread.extend_from_slice(&piece[..length]);
            // A piece may end within a character, whose other half comes with the next.
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
