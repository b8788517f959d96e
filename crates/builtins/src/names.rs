//! The spelling of tool names.

use plexus_mcp_core::Tool;

/// How the namespace and the method of a tool are joined to one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "these are the spellings that the product offers"
)]
pub enum Names {
    /// `health.check`, as the specification of Substrate has it (S003-16). Some model APIs refuse dots.
    Dotted,
    /// `health_check`, which every model API accepts.
    #[default]
    Underscored,
    /// `create_task`: the method alone, for a service with one namespace (S002-20).
    Flat,
}

impl Names {
    /// A tool of this namespace and method, without arguments.
    pub fn tool(self, namespace: &str, method: &str) -> Tool {
        Tool::new(self.joined(namespace, method))
    }

    /// The name of a tool.
    pub fn joined(self, namespace: &str, method: &str) -> String {
        match self {
            Self::Dotted => [namespace, ".", method].concat(),
            Self::Underscored => [namespace, "_", method].concat(),
            Self::Flat => method.to_owned(),
        }
    }
}
