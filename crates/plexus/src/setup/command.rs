//! The command with which an agent starts Plexus, and the commands of agents that add it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use plexus_mcp_client::Program;
use plexus_mcp_client::child::{Child, ChildInput, ExitReport, Grace};
use plexus_mcp_config::clients::{AddCommand, AgentProgram, PLEXUS};
use tokio::io::AsyncReadExt as _;

use crate::printable::one_line;
use crate::process_env::environment;

/// The name of the packages for npm and uv.
const PACKAGE: &str = "plexus-mcp";
const SERVE: [&str; 2] = ["serve", "--stdio"];

/// How long the command of an agent may take.
const ADD_TIMEOUT: Duration = Duration::from_mins(1);
/// How much of its output is read.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// The command that starts this program, from any directory and also after an update of it.
pub(super) fn registered() -> anyhow::Result<Vec<String>> {
    let program = std::env::current_exe().context("cannot find out where this program is")?;
    let start = start_of(&program, environment("PATH").as_deref())?;
    Ok(start.into_iter().chain(SERVE.map(str::to_owned)).collect())
}

fn start_of(program: &Path, path: Option<&str>) -> anyhow::Result<Vec<String>> {
    // The folders of these two are removed at any time.
    if has_folder(program, |name| name == "_npx") {
        return Ok(["npx", "-y", PACKAGE].map(str::to_owned).into());
    }
    let is_of_uvx =
        |name: &str| name.starts_with("archive-v") || name.starts_with("environments-v");
    if has_folder(program, |name| name == "uv") && has_folder(program, is_of_uvx) {
        return Ok(["uvx", PACKAGE].map(str::to_owned).into());
    }
    // A link, as Homebrew has it, stays the same when the version changes.
    let canonical = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let folders = std::env::split_paths(path.unwrap_or_default());
    let linked = folders
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(PLEXUS))
        .find(|link| fs::canonicalize(link).is_ok_and(|target| target == canonical));
    let program = linked.unwrap_or(canonical);
    match program.to_str() {
        Some(program) => Ok(vec![program.to_owned()]),
        None => bail!(
            "the path of this program is not UTF-8: {}",
            program.display()
        ),
    }
}

fn has_folder(program: &Path, is_it: impl Fn(&str) -> bool) -> bool {
    let mut names = program.iter().filter_map(|name| name.to_str());
    names.any(is_it)
}

/// Adds Plexus with the command of an agent.
///
/// # Errors
/// It fails or takes too long.
pub(super) async fn add(
    agent: &AgentProgram,
    add: &AddCommand,
    home: Option<&PathBuf>,
    command: &[String],
) -> anyhow::Result<()> {
    let mut program = Program::new(agent.name).args(add.arguments(PLEXUS, command));
    for variable in add.unset {
        program = program.env_remove(*variable);
    }
    // Some of these commands look at the current directory for files of a project.
    if let Some(home) = home {
        program = program.cwd(home);
    }
    let (mut child, input, output) = Child::start(&program)?;
    drop::<ChildInput>(input);
    let mut said = String::new();
    let mut output = output.take(MAX_OUTPUT_BYTES);
    let ended = tokio::time::timeout(ADD_TIMEOUT, async {
        // Its output only explains a failure.
        drop(output.read_to_string(&mut said).await);
        child.exited().await
    })
    .await;
    match ended {
        Ok(ExitReport::Code(0)) => Ok(()),
        Ok(report) => {
            let said = child.stderr_tail().join(" ") + &said;
            Err(anyhow!("it {report}: {}", one_line(said.trim())))
        }
        Err(_elapsed) => {
            child.stop(Grace::default()).await;
            Err(anyhow!("it did not end within {} s", ADD_TIMEOUT.as_secs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(program: &str, path: &str) -> Vec<String> {
        start_of(Path::new(program), Some(path)).unwrap()
    }

    #[test]
    fn the_command_outlives_the_folder_of_a_package_runner() {
        let npx = "/home/ada/.npm/_npx/1a2b/node_modules/@plexus-mcp/linux-x64/bin/plexus";
        assert_eq!(start(npx, ""), ["npx", "-y", "plexus-mcp"]);
        let uvx = "/home/ada/.cache/uv/archive-v0/x1/plexus_mcp/bin/plexus";
        assert_eq!(start(uvx, ""), ["uvx", "plexus-mcp"]);
        let global =
            "/usr/lib/node_modules/plexus-mcp/node_modules/@plexus-mcp/linux-x64/bin/plexus";
        assert_eq!(start(global, "/nowhere"), [global]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_path_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (cellar, bin) = (folder.join("Cellar/0.1.0"), folder.join("bin"));
        fs::create_dir_all(&cellar).unwrap();
        fs::create_dir_all(&bin).unwrap();
        fs::write(cellar.join("plexus"), "").unwrap();
        std::os::unix::fs::symlink(cellar.join("plexus"), bin.join("plexus")).unwrap();
        let program = cellar.join("plexus");
        let linked = start(program.to_str().unwrap(), bin.to_str().unwrap());
        assert_eq!(linked, [bin.join("plexus").to_str().unwrap()]);
        let alone = start(program.to_str().unwrap(), "");
        assert_eq!(alone, [program.to_str().unwrap()]);
    }
}
