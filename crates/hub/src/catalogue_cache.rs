//! The catalogue cache: the offers of servers from their last connection, so that lists can be
//! answered before the servers are connected again.
//!
//! Each server has a file, named after the fingerprint of its definition: another definition is
//! another server. A file that cannot be parsed counts as missing. A server that did not answer has
//! an empty file, so that lists do not wait for it again for a while.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plexus_mcp_core::{Catalogue, Entry, List, Section};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::{Implementation, ServerCapabilities};
use plexus_mcp_wire::{Limits, Raw};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use plexus_mcp_config::edit;

/// The largest catalogue that is cached: 50,000 tools of more than 1 KiB each.
const MAX_CATALOGUE_BYTES: usize = 64 * 1024 * 1024;
/// How many catalogues are cached; the oldest files are evicted first.
const MAX_CACHED_CATALOGUES: usize = 1000;
/// How long lists do not wait for a server that did not answer. It is short, because the user may
/// repair the server at any time.
const SILENCE_TTL: Duration = Duration::from_hours(1);
/// The version of the file format; other versions are not read.
const FILE_FORMAT: u32 = 2;

/// The cached catalogues of servers, in a directory.
#[derive(Debug, Clone)]
pub struct CatalogueCache {
    directory: PathBuf,
}

/// The cached offer of a server.
#[derive(Debug, Clone)]
pub(crate) struct CachedOffer {
    pub(crate) catalogue: Arc<Catalogue>,
    /// The revision that the server spoke.
    pub(crate) revision: Option<String>,
}

impl CatalogueCache {
    /// Caches catalogues in `directory`, which need not exist yet.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// The cached offer of the server with this fingerprint.
    pub(crate) fn find(&self, fingerprint: &[u8; 32]) -> Option<CachedOffer> {
        let bytes = fs::read(self.file(fingerprint)).ok()?;
        let limits = Limits {
            max_bytes: MAX_CATALOGUE_BYTES,
            ..Limits::default()
        };
        let raw = Raw::parse(bytes.into(), &limits).ok()?;
        let written: CatalogueFile<Cow<'_, str>, &RawValue> = raw.decode().ok()?;
        (written.format == FILE_FORMAT).then(|| written.into_offer(&raw))?
    }

    /// Stores the offer of the server with this fingerprint.
    ///
    /// # Errors
    /// It cannot be written, or is too large.
    pub(crate) fn keep(&self, fingerprint: &[u8; 32], known: &CachedOffer) -> io::Result<()> {
        let text = serde_json::to_string(&CatalogueFile::new(known))?;
        if text.len() > MAX_CATALOGUE_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        edit::private_directory(&self.directory)?;
        edit::write(&self.file(fingerprint), &text)?;
        self.evict_oldest()
    }

    /// Records that the server with this fingerprint did not answer, unless its offer is cached.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn note_silent(&self, fingerprint: &[u8; 32]) -> io::Result<()> {
        let file = self.file(fingerprint);
        if fs::metadata(&file).is_ok_and(|file| file.len() > 0) {
            return Ok(());
        }
        edit::private_directory(&self.directory)?;
        edit::write(&file, "")?;
        self.evict_oldest()
    }

    /// Whether the server with this fingerprint recently did not answer.
    pub(crate) fn was_silent(&self, fingerprint: &[u8; 32]) -> bool {
        let is_recent = |modified: SystemTime| {
            // A time in the future comes from a clock that was set back.
            modified.elapsed().is_ok_and(|age| age < SILENCE_TTL)
        };
        fs::metadata(self.file(fingerprint))
            .is_ok_and(|file| file.len() == 0 && file.modified().is_ok_and(is_recent))
    }

    fn file(&self, fingerprint: &[u8; 32]) -> PathBuf {
        let mut name = String::with_capacity(2 * fingerprint.len() + 5);
        for byte in fingerprint {
            name.extend(hexadecimal(*byte));
        }
        name.push_str(".json");
        self.directory.join(name)
    }

    fn evict_oldest(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, PathBuf)> = fs::read_dir(&self.directory)?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
            })
            .collect();
        files.sort();
        let surplus = files.len().saturating_sub(MAX_CACHED_CATALOGUES);
        for (_, file) in files.iter().take(surplus) {
            // Another process may have removed it first.
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

/// The content of a cache file: the definitions as they are, each after its key.
#[derive(Serialize, Deserialize)]
struct CatalogueFile<Key, Definition> {
    format: u32,
    revision: Option<String>,
    identity: Implementation,
    instructions: Option<String>,
    capabilities: Raw,
    tools: Vec<(Key, Definition)>,
    resources: Vec<(Key, Definition)>,
    templates: Vec<(Key, Definition)>,
    prompts: Vec<(Key, Definition)>,
}

impl<'a> CatalogueFile<&'a str, &'a Raw> {
    fn new(known: &'a CachedOffer) -> Self {
        let catalogue = &known.catalogue;
        let list = |section| {
            let entries = catalogue.list(section).entries().iter();
            let kept = |entry: &'a Entry| (&*entry.key, &entry.definition);
            entries.map(kept).collect()
        };
        let features = Revision::NEWEST_STATELESS.features();
        Self {
            format: FILE_FORMAT,
            revision: known.revision.clone(),
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

impl CatalogueFile<Cow<'_, str>, &RawValue> {
    /// The offer, as slices of `file`.
    fn into_offer(self, file: &Raw) -> Option<CachedOffer> {
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
                .map(|(key, definition)| Entry::with_key(section, key, file.part(definition)))
                .collect::<Result<_, _>>()
                .ok()?;
            catalogue.set_list(section, List::new(entries).ok()?);
        }
        Some(CachedOffer {
            catalogue: Arc::new(catalogue),
            revision: self.revision,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> CachedOffer {
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
        CachedOffer {
            catalogue: Arc::new(catalogue),
            revision: Some("2025-06-18".to_owned()),
        }
    }

    #[test]
    fn a_cached_catalogue_is_found_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let cache = CatalogueCache::in_directory(directory.path().join("catalogues"));
        assert!(cache.find(&[1; 32]).is_none());
        let kept = known();
        cache.keep(&[1; 32], &kept).unwrap();
        let found = cache.find(&[1; 32]).unwrap();
        assert!(!found.catalogue.differs_from(&kept.catalogue));
        assert_eq!(found.revision, kept.revision);
        assert!(cache.find(&[2; 32]).is_none(), "another definition");
    }

    /// The list of a gateway waits for every server whose catalogue is not cached.
    #[test]
    fn a_catalogue_of_50_000_tools_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let cache = CatalogueCache::in_directory(directory.path().join("catalogues"));
        let description = "x".repeat(1_000);
        let tool = |number: usize| {
            let text = format!(
                r#"{{"name":"t{number}","description":"{description}","inputSchema":{{"type":"object"}}}}"#
            );
            let raw = Raw::parse(text.into(), &Limits::default()).unwrap();
            Entry::new(Section::Tools, raw).unwrap()
        };
        let mut catalogue = Catalogue::new(
            Implementation::new("git", "2"),
            ServerCapabilities::default(),
        );
        let tools = (0..50_000).map(tool).collect();
        catalogue.set_list(Section::Tools, List::new(tools).unwrap());
        let kept = CachedOffer {
            catalogue: Arc::new(catalogue),
            revision: None,
        };
        cache.keep(&[1; 32], &kept).unwrap();
        let found = cache.find(&[1; 32]).unwrap();
        assert_eq!(found.catalogue.list(Section::Tools).entries().len(), 50_000);
    }

    #[test]
    fn a_server_that_did_not_answer_is_silent_until_it_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let cache = CatalogueCache::in_directory(directory.path().join("catalogues"));
        assert!(!cache.was_silent(&[1; 32]));
        cache.note_silent(&[1; 32]).unwrap();
        cache.note_silent(&[1; 32]).unwrap();
        assert!(cache.was_silent(&[1; 32]) && !cache.was_silent(&[2; 32]));
        assert!(cache.find(&[1; 32]).is_none());
        cache.keep(&[1; 32], &known()).unwrap();
        cache.note_silent(&[1; 32]).unwrap();
        assert!(!cache.was_silent(&[1; 32]), "it is known now");
        assert!(cache.find(&[1; 32]).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn files_are_their_owners_only() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let cache = CatalogueCache::in_directory(directory.path());
        cache.keep(&[1; 32], &known()).unwrap();
        let mode = fs::metadata(cache.file(&[1; 32]))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_cannot_be_used_counts_as_missing() {
        let directory = tempfile::tempdir().unwrap();
        let cache = CatalogueCache::in_directory(directory.path());
        cache.keep(&[1; 32], &known()).unwrap();
        let file = cache.file(&[1; 32]);
        let whole = fs::read_to_string(&file).unwrap();
        for broken in [
            "",
            "{",
            "[]",
            "{\"format\":2}",
            &whole.replace("\"format\":2", "\"format\":1"),
        ] {
            fs::write(&file, broken).unwrap();
            assert!(cache.find(&[1; 32]).is_none(), "{broken}");
        }
    }
}
