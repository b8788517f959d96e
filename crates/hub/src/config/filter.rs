//! Which tools of a server are offered.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Which tools of a server are offered: those that `allow` matches, or all if it is empty, without
/// those that `deny` matches. Both are globs over the server's own tool names.
#[derive(Debug, Clone, Default)]
pub struct ToolFilter {
    allow: Patterns,
    deny: Patterns,
}

impl ToolFilter {
    /// Compiles the globs; fails with the first that is none.
    pub fn new(allow: Vec<String>, deny: Vec<String>) -> Result<Self, globset::Error> {
        Ok(Self {
            allow: Patterns::new(allow)?,
            deny: Patterns::new(deny)?,
        })
    }

    /// Whether the tool is offered.
    pub fn admits(&self, tool: &str) -> bool {
        let allowed = self.allow.globs.is_empty() || self.allow.compiled.is_match(tool);
        allowed && !self.deny.compiled.is_match(tool)
    }

    /// The globs of tools that are offered; none means all.
    pub fn allow(&self) -> &[String] {
        &self.allow.globs
    }

    /// The globs of tools that are not offered.
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
    fn nothing_said_admits_all() {
        assert!(ToolFilter::default().admits("anything"));
    }

    /// C28: globs are real ones.
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
