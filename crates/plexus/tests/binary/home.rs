//! A home directory with a project, for commands about configuration.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
#[cfg(unix)]
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use crate::process::{DATA_DIR, Plexus, ProcessOutput, plexus};

pub(crate) struct Home {
    directory: TempDir,
}

impl Home {
    /// A home directory with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let home = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(home.path("project")).unwrap();
        for (name, text) in files {
            let file = home.path(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        home
    }

    /// The path of a file in it, in the form that the program prints.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Runs the program in the project.
    pub(crate) fn run(&self, arguments: &[&str]) -> ProcessOutput {
        Plexus::spawn(&mut self.command(arguments)).end()
    }

    /// Runs the program in the project, with these variables.
    pub(crate) fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> ProcessOutput {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        Plexus::spawn(&mut command).end()
    }

    /// Starts the program in the project, with its data in the directory `data` of this home.
    pub(crate) fn start(&self, arguments: &[&str]) -> Plexus {
        Plexus::spawn(self.command(arguments).env(DATA_DIR, self.path("data")))
    }

    /// The same, with this standard output, which the test reads or not.
    #[cfg(unix)]
    pub(crate) fn start_into(&self, stdout: impl Into<Stdio>, arguments: &[&str]) -> Plexus {
        let mut command = self.command(arguments);
        Plexus::spawn(command.env(DATA_DIR, self.path("data")).stdout(stdout))
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = plexus(arguments);
        command
            .current_dir(self.path("project"))
            .env("HOME", self.path(""))
            .env("GITHUB_TOKEN", "hunter2")
            .env_remove("XDG_CONFIG_HOME");
        command
    }

    /// The output of a command that succeeds without warnings.
    pub(crate) fn succeeds(&self, arguments: &[&str]) -> Vec<String> {
        let ended = self.run(arguments);
        assert_eq!((ended.code, ended.stderr.as_slice()), (Some(0), &[][..]));
        ended.stdout
    }

    /// The JSON output of a command that succeeds.
    pub(crate) fn json_output(&self, arguments: &[&str]) -> Value {
        let printed = self.succeeds(arguments);
        assert_eq!(printed.len(), 1, "{printed:?}");
        serde_json::from_str(&printed[0]).unwrap()
    }

    /// Runs a command that must exit with 1, and returns its standard error.
    pub(crate) fn fails(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stdout.is_empty(), "{ended:?}");
        ended.stderr.join("\n")
    }
}
