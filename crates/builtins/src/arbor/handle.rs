//! Handles: pointers to data of other services.

use std::fmt;
use std::str::FromStr;

/// The maximum length of a handle, in bytes.
const MAX_HANDLE_BYTES: usize = 4096;

/// A pointer to data of another service, written `plugin@version::method:meta:meta…`, for example
/// `task@1::task:task_0190…` for a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Handle {
    /// The service that has the data: the namespace of a service, or the id of a plug-in.
    pub plugin_id: String,
    /// The version of that service.
    pub version: String,
    /// The method that reads the data.
    pub method: String,
    /// The arguments of the method, such as the id of a task.
    pub meta: Vec<String>,
}

/// The text is not a valid handle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a handle is written plugin@version::method:meta, for example task@1::task:task_0190; {0}")]
pub struct InvalidHandle(&'static str);

impl FromStr for Handle {
    type Err = InvalidHandle;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX_HANDLE_BYTES {
            return Err(InvalidHandle("this text is too long"));
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidHandle("this text has control characters"));
        }
        let (plugin, target) = text
            .split_once("::")
            .ok_or(InvalidHandle("this text has no ::"))?;
        let (plugin_id, version) = plugin
            .split_once('@')
            .ok_or(InvalidHandle("this text has no @version"))?;
        let mut parts = target.split(':').map(str::to_owned);
        let method = parts.next().unwrap_or_default();
        if [plugin_id, version, &method].contains(&"") {
            return Err(InvalidHandle("a part of this text is empty"));
        }
        Ok(Self {
            plugin_id: plugin_id.to_owned(),
            version: version.to_owned(),
            method,
            meta: parts.collect(),
        })
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            plugin_id,
            version,
            method,
            meta,
        } = self;
        write!(f, "{plugin_id}@{version}::{method}")?;
        meta.iter().try_for_each(|part| write!(f, ":{part}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_read_and_written() {
        for text in [
            "cone@1.0.0::chat:42:user",
            "task@1::task",
            "a@b::c::d",
            "ü@1::x:",
        ] {
            assert_eq!(text.parse::<Handle>().unwrap().to_string(), text);
        }
        let handle: Handle = "cone@1.0.0::chat:42:user".parse().unwrap();
        assert_eq!(
            (&*handle.plugin_id, &*handle.version, &*handle.method),
            ("cone", "1.0.0", "chat")
        );
        assert_eq!(handle.meta, ["42", "user"]);
    }

    #[test]
    fn other_texts_are_refused() {
        let long = format!("a@1::b:{}", "x".repeat(MAX_HANDLE_BYTES));
        for text in [
            "", "task", "task::x", "@1::x", "a@::x", "a@1::", "a@1::x\n", &long,
        ] {
            assert!(text.parse::<Handle>().is_err(), "{text:?}");
        }
    }
}
