//! `Write`: a file with this content.

use crate::schema::SetupError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::local_tool::LocalTool;
use super::{Workspace, files};
use crate::permission::Risk;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArguments {
    /// The file. Its directories are created as needed.
    file_path: String,
    /// The whole content.
    content: String,
}

pub(super) fn tool(workspace: &Workspace) -> Result<LocalTool<WriteArguments>, SetupError> {
    let (workspace, of_workspace) = (workspace.clone(), workspace.clone());
    LocalTool::blocking(
        "Write",
        "Writes a text file. An existing file is replaced.",
        Risk::Medium,
        &of_workspace,
        move |arguments: WriteArguments| {
            let path = workspace.path(&arguments.file_path);
            let was_there = path.exists();
            files::replace(&path, &arguments.file_path, &arguments.content)?;
            let lines = arguments.content.lines().count();
            let done = if was_there { "replaced" } else { "created" };
            Ok(format!("{done} {}; lines: {lines}", workspace.shown(&path)))
        },
    )
}
