//! Names that every model takes: `server__tool`, of legal characters, at most 64 long.

use std::sync::{Arc, OnceLock};

use foldhash::HashMap;
use sha2::{Digest, Sha256};

/// The longest name that all model APIs take.
pub const MAX_NAME: usize = 64;
const SEPARATOR: &str = "__";
/// Hexadecimal digits of the hash that tells names apart which would otherwise be the same.
const HASH: usize = 8;

/// Names of many servers' entries, unique among all, and the way back.
///
/// A name is never taken apart to find out what it stands for: servers may have `__` in their
/// names (C11).
#[derive(Debug, Clone)]
pub struct Names<T> {
    shown: HashMap<Arc<str>, T>,
    /// What was named, in order.
    named: Vec<Named>,
    /// Other ways to name it. Few callers use one, and thousands of names are made before the first
    /// client is answered, so they are made when the first is looked for.
    others: OnceLock<Others>,
}

#[derive(Debug, Clone)]
struct Named {
    server: Arc<str>,
    entry: Arc<str>,
    name: Arc<str>,
}

#[derive(Debug, Clone, Default)]
struct Others {
    /// The shown names by their aliases.
    aliases: HashMap<String, Arc<str>>,
    /// Under which names entries are shown that their servers call the same.
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
    /// Names `entry` of `server`, and remembers what the name stands for. Who comes first gets the
    /// plain name; a later one that would get the same, or a name that is too long, gets a hash.
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
        let fits = plain.len() <= MAX_NAME && !self.shown.contains_key(plain.as_str());
        let name: Arc<str> = if fits {
            plain.into()
        } else {
            self.hashed(&plain, &server, &entry).into()
        };
        self.shown.insert(Arc::clone(&name), stands_for);
        self.others.take();
        self.named.push(Named {
            server,
            entry,
            name: Arc::clone(&name),
        });
        name
    }

    /// A name with a hash of what it stands for. Somebody may have guessed it and taken it; then
    /// the next is tried.
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

    /// Keeps a name as it is, unless it is taken.
    pub fn add_plain(&mut self, entry: &str, stands_for: T) -> Option<Arc<str>> {
        if self.shown.contains_key(entry) {
            return None;
        }
        let name: Arc<str> = entry.into();
        self.shown.insert(Arc::clone(&name), stands_for);
        Some(name)
    }

    /// What a name stands for: as it is shown, as `server.tool`, or as `mcp__server__tool`.
    pub fn find(&self, name: &str) -> Option<&T> {
        self.shown.get(name).or_else(|| {
            let aliases = &self.others().aliases;
            self.shown.get(aliases.get(name)?)
        })
    }

    /// The entries that their servers call `name`, as they are shown. Only if there is exactly one
    /// can it be meant.
    pub fn called(&self, name: &str) -> &[Arc<str>] {
        self.others().short.get(name).map_or(&[], Vec::as_slice)
    }

    fn others(&self) -> &Others {
        self.others.get_or_init(|| Others::of(&self.named))
    }
}

impl Others {
    fn of(named: &[Named]) -> Self {
        let mut others = Self::default();
        for Named {
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

/// Whether an entry can be found without its server. A name that looks as if it had a server in it
/// cannot: whoever calls `git__push` when `git` is gone must not reach a tool that another server
/// calls so.
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

/// A name cut to leave room for a hash of what it stands for.
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
        .split_first_chunk::<{ HASH / 2 }>()
        .unwrap_or((&[0; HASH / 2], &[]));
    let hash = format!("{:0HASH$x}", u32::from_be_bytes(*start));
    // The plain name is ASCII, so any cut is between characters.
    let kept: String = plain.chars().take(MAX_NAME - HASH - 1).collect();
    format!("{kept}_{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C11, S001-15, DESIGN "Model-safe names".
    #[test]
    fn names_are_legal_short_and_found_again() {
        let mut names = Names::default();
        assert_eq!(&*names.add("git", "status", 1), "git__status");
        assert_eq!(&*names.add("my server", "a.b/c", 2), "my_server__a_b_c");
        let long = names.add("server", "x".repeat(200), 3);
        assert_eq!(long.len(), MAX_NAME);
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

    /// C11, C12: a name without its server is good if only one has it, and cannot be mistaken for
    /// one with a server.
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

    /// C11: names that would be the same are told apart, the same way every time.
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
        assert!(second.starts_with("a__b__c_") && second.len() == "a__b__c_".len() + HASH);
        assert_eq!(
            (names.find(&first), names.find(&second)),
            (Some(&1), Some(&2))
        );
        let (again_first, again_second, _) = build();
        assert_eq!((first, second), (again_first, again_second));
    }

    /// A server that guesses the hash of another's name takes nothing from it.
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
        assert!(second.len() <= MAX_NAME);
        assert_eq!(
            (names.find(&first), names.find(&second)),
            (Some(&2), Some(&1))
        );
    }
}
