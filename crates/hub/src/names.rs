//! Tool-name mapping: `server__tool`, of characters and a length that every model API accepts.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

/// The longest name that all model APIs accept, in characters.
pub const MAX_NAME_CHARS: usize = 64;
const SEPARATOR: &str = "__";
/// Hexadecimal digits of the hash that distinguishes names which would otherwise be equal.
const HASH_DIGITS: usize = 8;

/// Unique names for the entries of many servers, and the mapping back.
///
/// A name is never split to find its owner: server names may contain `__` (C11).
#[derive(Debug, Clone)]
pub struct Names<T> {
    shown: HashMap<Arc<str>, T>,
    /// The named entries, in order.
    named: Vec<NamedEntry>,
    /// Alternative names. Few callers use one, and thousands of names are made before the first
    /// client is answered, so they are computed at the first lookup.
    others: OnceLock<Others>,
}

#[derive(Debug, Clone)]
struct NamedEntry {
    server: Arc<str>,
    entry: Arc<str>,
    name: Arc<str>,
}

#[derive(Debug, Clone, Default)]
struct Others {
    /// The shown names by their aliases.
    aliases: HashMap<String, Arc<str>>,
    /// The shown names of entries that have the same name on their servers.
    short: HashMap<Arc<str>, Vec<Arc<str>>>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self {
            shown: HashMap::default(),
            named: Vec::new(),
            others: OnceLock::new(),
        }
    }
}

impl<T> Names<T> {
    /// Names `entry` of `server`, and records what the name stands for. The first entry gets the
    /// plain name; a later one with the same name, or a name that is too long, gets a hash suffix.
    pub fn add(
        &mut self,
        server: impl Into<Arc<str>>,
        entry: impl Into<Arc<str>>,
        stands_for: T,
    ) -> Arc<str> {
        let (server, entry) = (server.into(), entry.into());
        let mut plain = String::with_capacity(server.len() + SEPARATOR.len() + entry.len());
        plain.extend(server.chars().map(legal));
        plain.push_str(SEPARATOR);
        plain.extend(entry.chars().map(legal));
        let fits = plain.len() <= MAX_NAME_CHARS && !self.shown.contains_key(plain.as_str());
        let name: Arc<str> = if fits {
            plain.into()
        } else {
            self.hashed(&plain, &server, &entry).into()
        };
        self.shown.insert(Arc::clone(&name), stands_for);
        self.others.take();
        self.named.push(NamedEntry {
            server,
            entry,
            name: Arc::clone(&name),
        });
        name
    }

    /// A name with a hash suffix. If a server has guessed and taken it, the next salt is tried.
    fn hashed(&self, plain: &str, server: &str, entry: &str) -> String {
        let mut salt = 0;
        loop {
            let name = hashed(plain, server, entry, salt);
            if !self.shown.contains_key(name.as_str()) {
                return name;
            }
            salt += 1;
        }
    }

    /// Uses a name as it is, unless it is taken.
    pub fn add_plain(&mut self, entry: &str, stands_for: T) -> Option<Arc<str>> {
        if self.shown.contains_key(entry) {
            return None;
        }
        let name: Arc<str> = entry.into();
        self.shown.insert(Arc::clone(&name), stands_for);
        Some(name)
    }

    /// The entry of a name: the shown name, `server.tool`, or `mcp__server__tool`.
    pub fn find(&self, name: &str) -> Option<&T> {
        self.shown.get(name).or_else(|| {
            let aliases = &self.others().aliases;
            self.shown.get(aliases.get(name)?)
        })
    }

    /// The shown names of the entries whose servers call them `name`. The name is unambiguous only
    /// if there is exactly one.
    pub fn called(&self, name: &str) -> &[Arc<str>] {
        self.others().short.get(name).map_or(&[], Vec::as_slice)
    }

    fn others(&self) -> &Others {
        self.others.get_or_init(|| Others::of(&self.named))
    }
}

impl Others {
    fn of(named: &[NamedEntry]) -> Self {
        let mut others = Self::default();
        for NamedEntry {
            server,
            entry,
            name,
        } in named
        {
            for alias in [
                format!("{server}.{entry}"),
                format!("mcp{SEPARATOR}{server}{SEPARATOR}{entry}"),
                format!("mcp{SEPARATOR}{name}"),
            ] {
                let aliases = &mut others.aliases;
                aliases.entry(alias).or_insert_with(|| Arc::clone(name));
            }
            if is_short(entry) {
                let same = others.short.entry(Arc::clone(entry)).or_default();
                same.push(Arc::clone(name));
            }
        }
        others
    }
}

/// Whether the server could own an entry with this shown name. Names are not split to find the
/// owner; this only selects which servers to connect first.
pub fn may_own(server: &str, name: &str) -> bool {
    let prefix = Names::default().add(server, "", ());
    let unaliased = name.strip_prefix("mcp__").unwrap_or(name);
    [name, unaliased]
        .iter()
        .any(|name| name.starts_with(&*prefix) || name.starts_with(&format!("{server}__")))
        || name.starts_with(&format!("{server}."))
}

/// Whether an entry can be found without its server's name. A name that looks qualified cannot: a
/// call of `git__push` while `git` is missing must not reach a tool that another server calls
/// `git__push`.
fn is_short(entry: &str) -> bool {
    !entry.contains(SEPARATOR) && !entry.contains('.')
}

fn legal(c: char) -> char {
    if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
        c
    } else {
        '_'
    }
}

/// A name, shortened and extended by a hash of the server and the entry.
fn hashed(plain: &str, server: &str, entry: &str, salt: u32) -> String {
    let mut hasher = Sha256::new();
    hasher.update(
        u64::try_from(server.len())
            .unwrap_or(u64::MAX)
            .to_le_bytes(),
    );
    hasher.update(server);
    hasher.update(entry);
    if salt > 0 {
        hasher.update(salt.to_le_bytes());
    }
    let digest = hasher.finalize();
    let (start, _) = digest
        .split_first_chunk::<{ HASH_DIGITS / 2 }>()
        .unwrap_or((&[0; HASH_DIGITS / 2], &[]));
    let hash = format!("{:0HASH_DIGITS$x}", u32::from_be_bytes(*start));
    // The plain name is ASCII, so any cut is between characters.
    let kept: String = plain
        .chars()
        .take(MAX_NAME_CHARS - HASH_DIGITS - 1)
        .collect();
    format!("{kept}_{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C11, S001-15.
    #[test]
    fn names_are_legal_short_and_found_again() {
        let mut names = Names::default();
        assert_eq!(&*names.add("git", "status", 1), "git__status");
        assert_eq!(&*names.add("my server", "a.b/c", 2), "my_server__a_b_c");
        let long = names.add("server", "x".repeat(200), 3);
        assert_eq!(long.len(), MAX_NAME_CHARS);
        for (name, stands_for) in [
            ("git__status", 1),
            ("git.status", 1),
            ("mcp__git__status", 1),
            ("my server.a.b/c", 2),
            ("mcp__my_server__a_b_c", 2),
            (&*long, 3),
        ] {
            assert_eq!(names.find(name), Some(&stands_for), "{name}");
        }
        assert_eq!(names.find("status"), None);
        assert_eq!(names.find("git__stat"), None);
    }

    /// C11, C12: a name without its server is accepted if it is unambiguous, and is never taken for
    /// a qualified one.
    #[test]
    fn a_name_without_its_server_stands_for_all_that_are_called_so() {
        let mut names = Names::default();
        names.add("git", "status", 1);
        names.add("git", "log", 2);
        names.add("svn", "log", 3);
        names.add("evil", "hg__push", 4);
        names.add("evil", "hg.push", 5);
        let called = |name: &str| -> Vec<String> {
            names.called(name).iter().map(ToString::to_string).collect()
        };
        assert_eq!(called("status"), ["git__status"]);
        assert_eq!(called("log"), ["git__log", "svn__log"]);
        for name in ["hg__push", "hg.push", "nothing"] {
            assert!(called(name).is_empty(), "{name}");
        }
    }

    /// C11: equal names are distinguished, in the same way every time.
    #[test]
    fn collisions_are_told_apart() {
        let build = || {
            let mut names = Names::default();
            let first = names.add("a", "b__c", 1);
            let second = names.add("a__b", "c", 2);
            (first, second, names)
        };
        let (first, second, names) = build();
        assert_eq!(&*first, "a__b__c");
        assert!(second.starts_with("a__b__c_") && second.len() == "a__b__c_".len() + HASH_DIGITS);
        assert_eq!(
            (names.find(&first), names.find(&second)),
            (Some(&1), Some(&2))
        );
        let (again_first, again_second, _) = build();
        assert_eq!((first, second), (again_first, again_second));
    }

    #[test]
    fn only_likely_owners_are_asked_first() {
        for name in ["git__log", "mcp__git__log", "git.log"] {
            assert!(may_own("git", name), "{name}");
            assert!(!may_own("gi", name), "{name}");
        }
        // Either server may be meant, so both are connected.
        assert!(may_own("a", "a__b__c") && may_own("a__b", "a__b__c"));
        assert!(may_own("my server", "my_server__log"));
        assert!(may_own("my server", "mcp__my server__log"));
    }

    /// A server that guesses the hashed name of another's tool does not take it over.
    #[test]
    fn a_name_that_was_guessed_is_not_taken_over() {
        let long = "x".repeat(100);
        let expected = Names::default().add("victim", long.as_str(), 1);
        let guessed = expected.strip_prefix("victim__").unwrap();
        let mut names = Names::default();
        let first = names.add("victim", guessed, 2);
        assert_eq!(first, expected);
        let second = names.add("victim", long, 1);
        assert_ne!(first, second);
        assert!(second.len() <= MAX_NAME_CHARS);
        assert_eq!(
            (names.find(&first), names.find(&second)),
            (Some(&2), Some(&1))
        );
    }
}
