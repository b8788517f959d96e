//! Which tools are offered: of a server to everybody, or to a client of all.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Which tools are offered: those that `allow` matches, or all if it is empty, without those that
/// `deny` matches. Both are globs: in a server's filter over its own names for its tools, in a
/// client's over the names that rules of the policy are about.
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
        self.admits_any(&[tool])
    }

    /// Whether a tool is offered that goes by all these names.
    pub fn admits_any(&self, names: &[impl AsRef<str>]) -> bool {
        let matched = |globs: &GlobSet| names.iter().any(|name| globs.is_match(name.as_ref()));
        let allowed = self.allow.globs.is_empty() || matched(&self.allow.compiled);
        allowed && !matched(&self.deny.compiled)
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
