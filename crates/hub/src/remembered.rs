//! What servers offered when they were last connected, so that lists can be answered before they
//! are connected again.
//!
//! Each server has a file, named after the digest of its definition: another definition is another
//! server. A file that cannot be used counts as missing. A server that was waited for in vain has
//! an empty one, so that it is not waited for again.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use plexus_mcp::Revision;
use plexus_mcp::messages::{Implementation, ServerCapabilities};
use plexus_service::{Catalogue, Entry, List, Section};
use plexus_wire::{Limits, Raw};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::config::edit;

/// The largest catalogue that is kept.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// How many catalogues are kept; the ones that were written longest ago go first.
const MAX_FILES: usize = 1000;
/// Fewer catalogues than these are not worth a thread.
const MIN_SHARE: usize = 8;
/// Changes whenever older files can no longer be read.
const FORMAT: u32 = 2;

/// The catalogues of servers, in a directory.
#[derive(Debug, Clone)]
pub struct Remembered {
    directory: PathBuf,
}

/// What is known of a server that is not connected.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) catalogue: Arc<Catalogue>,
    /// The revision that it spoke.
    pub(crate) revision: Option<String>,
    /// Whether it asked its callers something.
    pub(crate) asks: bool,
}

impl Remembered {
    /// Keeps catalogues in `directory`, which need not exist yet.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// What the servers with these fingerprints offered, in the same order. Many are read at once:
    /// somebody waits for the first answer.
    pub(crate) fn find_all(&self, fingerprints: &[[u8; 32]]) -> Vec<Option<Known>> {
        // To find out how many threads are useful takes longer than to read a few files.
        let threads = match fingerprints.len() {
            0..=MIN_SHARE => 1,
            _ => thread::available_parallelism().map_or(1, NonZero::get),
        };
        let share = fingerprints.len().div_ceil(threads).max(MIN_SHARE);
        let find = |share: &[[u8; 32]]| -> Vec<_> {
            share
                .iter()
                .map(|fingerprint| self.find(fingerprint))
                .collect()
        };
        let mut shares = fingerprints.chunks(share);
        let Some(own) = shares.next() else {
            return Vec::new();
        };
        thread::scope(|scope| {
            let others: Vec<_> = shares
                .map(|share| scope.spawn(move || find(share)))
                .collect();
            let mut found = find(own);
            for other in others {
                // A thread that panicked found nothing.
                found.extend(other.join().unwrap_or_default());
            }
            found
        })
    }

    /// What the server with this fingerprint offered.
    fn find(&self, fingerprint: &[u8; 32]) -> Option<Known> {
        let bytes = fs::read(self.file(fingerprint)).ok()?;
        let limits = Limits {
            max_bytes: MAX_BYTES,
            ..Limits::default()
        };
        let raw = Raw::parse(bytes.into(), &limits).ok()?;
        let written: Written<Cow<'_, str>, &RawValue> = raw.decode().ok()?;
        (written.format == FORMAT).then(|| written.into_known(&raw))?
    }

    /// Keeps what the server with this fingerprint offers.
    ///
    /// # Errors
    /// It cannot be written, or is too large.
    pub(crate) fn keep(&self, fingerprint: &[u8; 32], known: &Known) -> io::Result<()> {
        let text = serde_json::to_string(&Written::new(known))?;
        if text.len() > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        edit::write(&self.file(fingerprint), &text)?;
        self.tidy()
    }

    /// Notes that the server with this fingerprint was waited for in vain, unless it is known.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn note_late(&self, fingerprint: &[u8; 32]) -> io::Result<()> {
        let file = self.file(fingerprint);
        if file.exists() {
            return Ok(());
        }
        edit::write(&file, "")?;
        self.tidy()
    }

    /// Whether the server with this fingerprint was waited for in vain.
    pub(crate) fn was_late(&self, fingerprint: &[u8; 32]) -> bool {
        fs::metadata(self.file(fingerprint)).is_ok_and(|file| file.len() == 0)
    }

    fn file(&self, fingerprint: &[u8; 32]) -> PathBuf {
        let mut name = String::with_capacity(2 * fingerprint.len() + 5);
        for byte in fingerprint {
            name.extend(hexadecimal(*byte));
        }
        name.push_str(".json");
        self.directory.join(name)
    }

    fn tidy(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, PathBuf)> = fs::read_dir(&self.directory)?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
            })
            .collect();
        files.sort();
        let surplus = files.len().saturating_sub(MAX_FILES);
        for (_, file) in files.iter().take(surplus) {
            // Another process may have been faster.
            drop(fs::remove_file(file));
        }
        Ok(())
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

fn hexadecimal(byte: u8) -> impl Iterator<Item = char> {
    let digit = |digit: u8| char::from_digit(digit.into(), 16);
    [byte >> 4, byte & 15].into_iter().filter_map(digit)
}

/// A catalogue as it stands in its file: its definitions as they are, each after its key.
#[derive(Serialize, Deserialize)]
struct Written<Key, Definition> {
    format: u32,
    revision: Option<String>,
    #[serde(default)]
    asks: bool,
    identity: Implementation,
    instructions: Option<String>,
    capabilities: Raw,
    tools: Vec<(Key, Definition)>,
    resources: Vec<(Key, Definition)>,
    templates: Vec<(Key, Definition)>,
    prompts: Vec<(Key, Definition)>,
}

impl<'a> Written<&'a str, &'a Raw> {
    fn new(known: &'a Known) -> Self {
        let catalogue = &known.catalogue;
        let list = |section| {
            let entries = catalogue.list(section).entries().iter();
            let kept = |entry: &'a Entry| (&*entry.key, &entry.definition);
            entries.map(kept).collect()
        };
        let features = Revision::NEWEST_STATELESS.features();
        Self {
            format: FORMAT,
            revision: known.revision.clone(),
            asks: known.asks,
            identity: catalogue.identity.clone(),
            instructions: catalogue.instructions.clone(),
            capabilities: catalogue.capabilities.to_raw(features),
            tools: list(Section::Tools),
            resources: list(Section::Resources),
            templates: list(Section::Templates),
            prompts: list(Section::Prompts),
        }
    }
}

impl Written<Cow<'_, str>, &RawValue> {
    /// What it says, as parts of `file`.
    fn into_known(self, file: &Raw) -> Option<Known> {
        let capabilities = ServerCapabilities::from_raw(&self.capabilities).ok()?;
        let mut catalogue = Catalogue::new(self.identity, capabilities);
        catalogue.instructions = self.instructions;
        for (section, definitions) in [
            (Section::Tools, self.tools),
            (Section::Resources, self.resources),
            (Section::Templates, self.templates),
            (Section::Prompts, self.prompts),
        ] {
            let entries = definitions
                .into_iter()
                .map(|(key, definition)| Entry::kept(section, key, file.part(definition)))
                .collect::<Result<_, _>>()
                .ok()?;
            catalogue.set_list(section, List::new(entries).ok()?);
        }
        Some(Known {
            catalogue: Arc::new(catalogue),
            revision: self.revision,
            asks: self.asks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let raw = |text: &str| Raw::parse(text.to_owned().into(), &Limits::default()).unwrap();
        let capabilities = ServerCapabilities {
            completions: true,
            extensions: Some(raw(r#"{"com.example/x":{}}"#)),
            ..ServerCapabilities::default()
        };
        let mut catalogue = Catalogue::new(Implementation::new("git", "2"), capabilities);
        catalogue.instructions = Some("Ask git.".to_owned());
        for (section, text) in [
            (
                Section::Tools,
                r#"{"name":"log","inputSchema":{"type":"object"},"x":1}"#,
            ),
            (Section::Resources, r#"{"uri":"git://log","name":"log"}"#),
            (
                Section::Templates,
                r#"{"uriTemplate":"git://{rev}","name":"rev"}"#,
            ),
            (Section::Prompts, r#"{"name":"review"}"#),
        ] {
            let entry = Entry::new(section, raw(text)).unwrap();
            catalogue.set_list(section, List::new(vec![entry]).unwrap());
        }
        Known {
            catalogue: Arc::new(catalogue),
            revision: Some("2025-06-18".to_owned()),
            asks: true,
        }
    }

    #[test]
    fn what_was_kept_is_found_whole() {
        let directory = tempfile::tempdir().unwrap();
        let remembered = Remembered::in_directory(directory.path().join("catalogues"));
        assert!(remembered.find(&[1; 32]).is_none());
        let kept = known();
        remembered.keep(&[1; 32], &kept).unwrap();
        let found = remembered.find(&[1; 32]).unwrap();
        assert!(!found.catalogue.differs_from(&kept.catalogue));
        assert_eq!(found.revision, kept.revision);
        assert!(found.asks);
        assert!(remembered.find(&[2; 32]).is_none(), "another definition");
    }

    #[test]
    fn who_was_late_is_late_until_it_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let remembered = Remembered::in_directory(directory.path().join("catalogues"));
        assert!(!remembered.was_late(&[1; 32]));
        remembered.note_late(&[1; 32]).unwrap();
        remembered.note_late(&[1; 32]).unwrap();
        assert!(remembered.was_late(&[1; 32]) && !remembered.was_late(&[2; 32]));
        assert!(remembered.find(&[1; 32]).is_none());
        remembered.keep(&[1; 32], &known()).unwrap();
        remembered.note_late(&[1; 32]).unwrap();
        assert!(!remembered.was_late(&[1; 32]), "it is known now");
        assert!(remembered.find(&[1; 32]).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn files_are_their_owners_only() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let remembered = Remembered::in_directory(directory.path());
        remembered.keep(&[1; 32], &known()).unwrap();
        let mode = fs::metadata(remembered.file(&[1; 32]))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_cannot_be_used_counts_as_missing() {
        let directory = tempfile::tempdir().unwrap();
        let remembered = Remembered::in_directory(directory.path());
        remembered.keep(&[1; 32], &known()).unwrap();
        let file = remembered.file(&[1; 32]);
        let whole = fs::read_to_string(&file).unwrap();
        for broken in [
            "",
            "{",
            "[]",
            "{\"format\":2}",
            &whole.replace("\"format\":2", "\"format\":1"),
        ] {
            fs::write(&file, broken).unwrap();
            assert!(remembered.find(&[1; 32]).is_none(), "{broken}");
        }
    }
}
