//! How tools are called.

use plexus_service::Tool;

/// How the namespace and the method of a tool are shown as one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "these are the spellings that the product offers"
)]
pub enum Names {
    /// `health.check`, as the Substrate documents have it (S003-16). Some model APIs refuse dots.
    Dotted,
    /// `health_check`, which every model API takes.
    #[default]
    Underscored,
    /// `create_task`, the method alone, as a system of one namespace has it (S002-20).
    Flat,
}

impl Names {
    /// A tool without arguments, called by this namespace and method.
    pub fn tool(self, namespace: &str, method: &str) -> Tool {
        Tool::new(self.joined(namespace, method))
    }

    /// The one name.
    pub(crate) fn joined(self, namespace: &str, method: &str) -> String {
        match self {
            Self::Dotted => [namespace, ".", method].concat(),
            Self::Underscored => [namespace, "_", method].concat(),
            Self::Flat => method.to_owned(),
        }
    }
}
