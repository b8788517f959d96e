//! `Edit`: replaces a text in a file.

use crate::schema::SetupError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::local_tool::LocalTool;
use super::{Workspace, files};
use crate::permission::Risk;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditArguments {
    /// The file.
    file_path: String,
    /// The text to replace, exactly as it is in the file. It must be there once, unless `replace_all`
    /// is set.
    old_string: String,
    /// The new text.
    new_string: String,
    /// Replace it everywhere.
    #[serde(default)]
    replace_all: bool,
}

pub(super) fn tool(workspace: &Workspace) -> Result<LocalTool<EditArguments>, SetupError> {
    let (workspace, of_workspace) = (workspace.clone(), workspace.clone());
    LocalTool::blocking(
        "Edit",
        "Replaces a text in a file by another.",
        Risk::Medium,
        &of_workspace,
        move |arguments: EditArguments| {
            let path = workspace.path(&arguments.file_path);
            let text = files::text_of(&path, &arguments.file_path)?;
            let (edited, count) = edited(&text, &arguments)?;
            files::replace(&path, &arguments.file_path, &edited)?;
            Ok(format!(
                "edited {}; places: {count}",
                workspace.shown(&path)
            ))
        },
    )
}

/// The text after the edit, and how many places were replaced.
fn edited(text: &str, arguments: &EditArguments) -> Result<(String, usize), String> {
    let EditArguments {
        file_path,
        old_string,
        new_string,
        replace_all,
    } = arguments;
    if old_string.is_empty() {
        return Err("old_string is empty; use Write for a new file".to_owned());
    }
    if old_string == new_string {
        return Err("old_string and new_string are the same".to_owned());
    }
    match text.matches(old_string.as_str()).count() {
        0 => Err(format!(
            "old_string is not in {file_path}; read the file again"
        )),
        1 => Ok((text.replacen(old_string, new_string, 1), 1)),
        count if *replace_all => Ok((text.replace(old_string, new_string), count)),
        count => Err(format!(
            "old_string is {count} times in {file_path}; give more of the text around it, or set \
             replace_all"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str, replace_all: bool) -> Result<(String, usize), String> {
        let arguments = EditArguments {
            file_path: "a.txt".to_owned(),
            old_string: old.to_owned(),
            new_string: new.to_owned(),
            replace_all,
        };
        edited("bee and bee and ant", &arguments)
    }

    #[test]
    fn an_edit_must_be_unambiguous() {
        assert_eq!(
            edit("ant", "wasp", false),
            Ok(("bee and bee and wasp".to_owned(), 1))
        );
        assert_eq!(
            edit("bee", "fly", true),
            Ok(("fly and fly and ant".to_owned(), 2))
        );
        for (old, new, reason) in [
            ("bee", "fly", "2 times"),
            ("cow", "fly", "not in a.txt"),
            ("", "fly", "use Write"),
            ("ant", "ant", "the same"),
        ] {
            let error = edit(old, new, false).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
