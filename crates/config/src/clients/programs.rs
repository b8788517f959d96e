//! The programs of other clients that run at a terminal, and their commands that add a server.

/// The program of a client.
#[derive(Debug)]
#[non_exhaustive]
pub struct AgentProgram {
    /// Its name in `PATH`.
    pub name: &'static str,
    /// Its command that adds a server for the user, if it is known.
    pub add: Option<AddCommand>,
}

/// A command that adds a server.
#[derive(Debug)]
#[non_exhaustive]
pub struct AddCommand {
    /// The words in front of the name of the server.
    before_name: &'static [&'static str],
    form: AddForm,
    /// The variables that would let it write another file than the one that was read.
    pub unset: &'static [&'static str],
    /// Whether the command writes the whole file anew and loses comments or unknown keys, so that
    /// the text has to be put back.
    pub loses_text: bool,
}

#[derive(Debug)]
enum AddForm {
    /// `-- PROGRAM ARGUMENTS`
    Dashes,
    /// `PROGRAM ARGUMENT -- ARGUMENTS`, where the second part has those that begin with a dash.
    DashesBeforeOptions,
}

impl AddCommand {
    /// The arguments that add the server `name`, which is started with `command`.
    pub fn arguments(&self, name: &str, command: &[String]) -> Vec<String> {
        let words = self.before_name.iter().copied().chain([name]);
        let mut arguments: Vec<String> = words.map(str::to_owned).collect();
        let split = match self.form {
            AddForm::Dashes => 0,
            AddForm::DashesBeforeOptions => {
                let first = command.iter().position(|word| word.starts_with('-'));
                first.unwrap_or(command.len())
            }
        };
        let (plain, options) = command.split_at_checked(split).unwrap_or((command, &[]));
        arguments.extend_from_slice(plain);
        if !options.is_empty() {
            arguments.push("--".to_owned());
            arguments.extend_from_slice(options);
        }
        arguments
    }
}

/// `claude mcp add --help` of 2.1.325. Its file is only written by it.
pub(super) const CLAUDE_CODE: AgentProgram = AgentProgram {
    name: "claude",
    add: Some(AddCommand {
        before_name: &["mcp", "add", "--scope", "user"],
        form: AddForm::Dashes,
        unset: &["CLAUDE_CONFIG_DIR"],
        loses_text: false,
    }),
};

/// `codex mcp add --help` of 0.166.0, which removes comments and the keys that it does not know.
pub(super) const CODEX: AgentProgram = AgentProgram {
    name: "codex",
    add: Some(AddCommand {
        before_name: &["mcp", "add"],
        form: AddForm::Dashes,
        unset: &["CODEX_HOME"],
        loses_text: true,
    }),
};

/// `gemini mcp add --help` of 0.61.0, which formats the whole file.
pub(super) const GEMINI: AgentProgram = AgentProgram {
    name: "gemini",
    add: Some(AddCommand {
        before_name: &["mcp", "add", "--scope", "user"],
        form: AddForm::DashesBeforeOptions,
        unset: &["GEMINI_CLI_HOME"],
        loses_text: true,
    }),
};

pub(super) const OPENCODE: AgentProgram = only("opencode");
pub(super) const GOOSE: AgentProgram = only("goose");
pub(super) const COPILOT_CLI: AgentProgram = only("copilot");
pub(super) const QWEN_CODE: AgentProgram = only("qwen");
pub(super) const AMP: AgentProgram = only("amp");

/// A program whose file is edited.
const fn only(name: &'static str) -> AgentProgram {
    AgentProgram { name, add: None }
}
