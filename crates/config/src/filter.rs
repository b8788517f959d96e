//! Tool filters: of a server for all clients, or of one client for all servers.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A filter of tools: admits those that `allow` matches, or all if it is empty, except those that
/// `deny` matches. Both are globs: in a server's filter over its own tool names, in a client's
/// filter over the names that policy rules use.
#[derive(Debug, Clone, Default)]
pub struct ToolFilter {
    allow: Patterns,
    deny: Patterns,
}

impl ToolFilter {
    /// Compiles the globs; fails with the first invalid one.
    pub fn new(allow: Vec<String>, deny: Vec<String>) -> Result<Self, globset::Error> {
        Ok(Self {
            allow: Patterns::new(allow)?,
            deny: Patterns::new(deny)?,
        })
    }

    /// Whether the filter admits the tool.
    pub fn admits(&self, tool: &str) -> bool {
        self.admits_any(&[tool])
    }

    /// Whether the filter admits a tool with all these names.
    pub fn admits_any(&self, names: &[impl AsRef<str>]) -> bool {
        let matched = |globs: &GlobSet| names.iter().any(|name| globs.is_match(name.as_ref()));
        let allowed = self.allow.globs.is_empty() || matched(&self.allow.compiled);
        allowed && !matched(&self.deny.compiled)
    }

    /// The globs of admitted tools; empty means all.
    pub fn allow(&self) -> &[String] {
        &self.allow.globs
    }

    /// The globs of tools that are not admitted.
    pub fn deny(&self) -> &[String] {
        &self.deny.globs
    }
}

impl PartialEq for ToolFilter {
    fn eq(&self, other: &Self) -> bool {
        self.allow() == other.allow() && self.deny() == other.deny()
    }
}

impl Eq for ToolFilter {}

#[derive(Debug, Clone, Default)]
struct Patterns {
    globs: Vec<String>,
    compiled: GlobSet,
}

impl Patterns {
    fn new(globs: Vec<String>) -> Result<Self, globset::Error> {
        let mut set = GlobSetBuilder::new();
        for glob in &globs {
            set.add(GlobBuilder::new(glob).build()?);
        }
        let compiled = set.build()?;
        Ok(Self { globs, compiled })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(allow: &[&str], deny: &[&str]) -> ToolFilter {
        let owned = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect();
        ToolFilter::new(owned(allow), owned(deny)).unwrap()
    }

    #[test]
    fn the_default_filter_admits_all_tools() {
        assert!(ToolFilter::default().admits("anything"));
    }

    /// C28: patterns are globs, not prefixes.
    #[test]
    fn deny_wins_over_allow() {
        let filter = filter(&["get_*", "list_*"], &["*_secret?"]);
        assert!(filter.admits("get_issue"));
        assert!(!filter.admits("create_issue"));
        assert!(!filter.admits("get_secrets"));
        assert!(filter.admits("get_secret"));
    }

    #[test]
    fn a_broken_glob_is_refused() {
        assert!(ToolFilter::new(vec!["[".into()], Vec::new()).is_err());
    }
}
