//! What servers offered when they were last connected, so that lists can be answered before they
//! are connected again.
//!
//! Each server has a file, named after the digest of its definition: another definition is another
//! server. A file that cannot be used counts as missing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use plexus_mcp::Revision;
use plexus_mcp::messages::{Implementation, ServerCapabilities};
use plexus_service::{Catalogue, Entry, List, Section};
use plexus_wire::{Limits, Raw};
use serde::{Deserialize, Serialize};

use crate::config::edit;

/// The largest catalogue that is kept.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// How many catalogues are kept; the ones that were written longest ago go first.
const MAX_FILES: usize = 1000;
/// Changes whenever older files can no longer be read.
const FORMAT: u32 = 1;

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

    /// What the server with this fingerprint offered.
    pub(crate) fn find(&self, fingerprint: &[u8; 32]) -> Option<Known> {
        let bytes = fs::read(self.file(fingerprint)).ok()?;
        let limits = Limits {
            max_bytes: MAX_BYTES,
            ..Limits::default()
        };
        let written: Written = Raw::parse(bytes.into(), &limits).ok()?.decode().ok()?;
        (written.format == FORMAT).then(|| written.into_known())?
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

    fn file(&self, fingerprint: &[u8; 32]) -> PathBuf {
        let digits = fingerprint.iter().map(|byte| format!("{byte:02x}"));
        let name: String = digits.chain([".json".to_owned()]).collect();
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

/// A catalogue as it stands in its file.
#[derive(Serialize, Deserialize)]
struct Written {
    format: u32,
    revision: Option<String>,
    #[serde(default)]
    asks: bool,
    identity: Implementation,
    instructions: Option<String>,
    capabilities: Raw,
    tools: Vec<Raw>,
    resources: Vec<Raw>,
    templates: Vec<Raw>,
    prompts: Vec<Raw>,
}

impl Written {
    fn new(known: &Known) -> Self {
        let catalogue = &known.catalogue;
        let list = |section| {
            let entries = catalogue.list(section).entries().iter();
            entries.map(|entry| entry.definition.clone()).collect()
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

    fn into_known(self) -> Option<Known> {
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
                .map(|definition| Entry::new(section, definition))
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
            "{\"format\":1}",
            &whole.replace("\"format\":1", "\"format\":0"),
        ] {
            fs::write(&file, broken).unwrap();
            assert!(remembered.find(&[1; 32]).is_none(), "{broken}");
        }
    }
}
