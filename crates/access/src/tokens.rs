//! Static tokens for setups without an authorization server, stored as hashes in a file.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plexus_mcp_core::{Principal, Scopes};
use plexus_mcp_oauth::Secret;
use plexus_mcp_server::CallerIdentity;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clock::now;
use crate::verified::{Rejected, Verified};

/// The prefix of every token, which people and secret scanners recognize.
const TOKEN_PREFIX: &str = "plexus_";
/// Domain separation: a prefix of the hashed token, so that the hash differs from one made elsewhere.
const HASH_DOMAIN: &str = "plexus|token|v1|";
/// The maximum length of a token's name.
const MAX_NAME_CHARS: usize = 64;

/// A file of static tokens. A request with the token `NAME` has the principal `token:NAME`.
///
/// The file contains hashes only. It is read again when it has changed, so that a removed token is
/// refused from then on, even if another process removed it.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    /// The tokens as of the last read.
    cache: Mutex<Option<(Version, Arc<Vec<TokenEntry>>)>>,
}

/// Detects changes of the file: modification time, size and inode number.
type Version = (Option<SystemTime>, u64, u64);

/// A token as stored in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenEntry {
    /// The name of the token, chosen by the user.
    pub name: String,
    /// The id by which a token is looked up. It is a part of the token, but not secret.
    pub id: String,
    /// The hash of the whole token.
    hash: String,
    /// The scopes of the token.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// When the token was made, in seconds since the Unix epoch.
    pub created: u64,
}

/// A token that was just made.
#[derive(Debug)]
#[non_exhaustive]
pub struct NewToken {
    /// The token itself. It is not stored, so it cannot be shown again.
    pub token: Secret,
    /// The entry in the file.
    pub entry: TokenEntry,
}

/// Why an operation on the token file failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read or written.
    #[error("cannot read or write the token file {}", .path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not in the format that Plexus writes.
    #[error("the token file {} cannot be parsed; move it away and make new tokens", .0.display())]
    Malformed(PathBuf),
    /// The name is malformed.
    #[error(
        "invalid token name {0:?}: use up to {MAX_NAME_CHARS} letters, digits, dots, dashes and underscores"
    )]
    Name(String),
    /// A scope is malformed.
    #[error("invalid scope {0:?}: a scope is one word without quotes and backslashes")]
    Scope(String),
    /// A token of this name exists.
    #[error("there is a token {0:?} already; remove it first, or use another name")]
    Taken(String),
    /// There is no token of this name.
    #[error("there is no token {0:?}")]
    Absent(String),
    /// The operating system has no random numbers.
    #[error("the operating system has no random numbers")]
    Randomness(#[source] getrandom::Error),
}

#[derive(Default, Serialize, Deserialize)]
struct TokenFileDocument {
    tokens: Vec<TokenEntry>,
}

impl TokenFile {
    /// The file at `path`, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            cache: Mutex::default(),
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All tokens, oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self) -> Result<Arc<Vec<TokenEntry>>, TokenFileError> {
        let version = self.version()?;
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cache {
            Some((cached, tokens)) if *cached == version => Ok(Arc::clone(tokens)),
            _ => {
                let tokens = Arc::new(self.read()?);
                *cache = Some((version, Arc::clone(&tokens)));
                Ok(tokens)
            }
        }
    }

    /// Makes a token and stores its hash.
    ///
    /// # Errors
    /// The name or a scope is malformed, the name is taken, or the file cannot be written.
    pub fn add(&self, name: &str, scopes: &[String]) -> Result<NewToken, TokenFileError> {
        let allowed_in_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(allowed_in_name) {
            return Err(TokenFileError::Name(name.to_owned()));
        }
        if let Some(wrong) = scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(TokenFileError::Scope(wrong.clone()));
        }
        let id = random::<9>()?;
        let token = format!("{TOKEN_PREFIX}{id}.{}", random::<32>()?);
        let entry = TokenEntry {
            name: name.to_owned(),
            hash: URL_SAFE_NO_PAD.encode(hash(&token)),
            id,
            scopes: scopes.to_vec(),
            created: now(),
        };
        let stored = entry.clone();
        self.change(move |tokens| {
            if tokens.iter().any(|token| token.name == stored.name) {
                return Err(TokenFileError::Taken(stored.name));
            }
            tokens.push(stored);
            Ok(())
        })?;
        let token = Secret::new(token);
        Ok(NewToken { token, entry })
    }

    /// Removes the token of this name, which is refused from then on.
    ///
    /// # Errors
    /// There is no token of this name, or the file cannot be written.
    pub fn remove(&self, name: &str) -> Result<(), TokenFileError> {
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name);
            if tokens.len() == before {
                return Err(TokenFileError::Absent(name.to_owned()));
            }
            Ok(())
        })
    }

    /// Verifies `token`. `None` if it does not have the form of a static token.
    pub(crate) fn verify(&self, token: &str) -> Option<Result<Verified, Rejected>> {
        let (id, _) = token.strip_prefix(TOKEN_PREFIX)?.split_once('.')?;
        let tokens = match self.list() {
            Ok(tokens) => tokens,
            Err(error) => {
                tracing::error!(%error, "cannot verify a static token");
                return Some(Err(Rejected::Unknown(error.to_string())));
            }
        };
        let given = URL_SAFE_NO_PAD.encode(hash(token));
        let found = tokens.iter().find(|entry| entry.id == id).filter(|entry| {
            verify_slices_are_equal(entry.hash.as_bytes(), given.as_bytes()).is_ok()
        });
        let verified = found.map(|entry| {
            let principal = Principal::new(format!("token:{}", entry.name));
            let scopes: Scopes = entry.scopes.iter().map(String::as_str).collect();
            Verified {
                identity: CallerIdentity::new(principal, scopes),
                bound_to: None,
            }
        });
        Some(verified.ok_or_else(|| Rejected::invalid("there is no such token")))
    }

    /// Changes the file under a file lock, so that changes of several processes are not lost.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<TokenEntry>) -> Result<(), TokenFileError>,
    ) -> Result<(), TokenFileError> {
        let io = |source| self.io(source);
        let directory = self.path.parent().unwrap_or(Path::new("."));
        // Other users must not see what is in the data directory, which may not exist yet.
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory).map_err(io)?;
        let lock = File::create(self.path.with_extension("lock")).map_err(io)?;
        lock.lock().map_err(io)?;
        let mut tokens = self.read()?;
        change(&mut tokens)?;
        let text = serde_json::to_vec_pretty(&TokenFileDocument { tokens });
        let text = text.map_err(|error| io(error.into()))?;
        // `NamedTempFile` is readable by its owner only, and `persist` keeps the permissions.
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(io)?;
        file.write_all(&text).map_err(io)?;
        file.as_file().sync_all().map_err(io)?;
        file.persist(&self.path).map_err(|error| io(error.error))?;
        Ok(())
    }

    fn read(&self) -> Result<Vec<TokenEntry>, TokenFileError> {
        match fs::read(&self.path) {
            Ok(text) => {
                let document: TokenFileDocument = serde_json::from_slice(&text)
                    .map_err(|_other| TokenFileError::Malformed(self.path.clone()))?;
                Ok(document.tokens)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.io(error)),
        }
    }

    fn version(&self) -> Result<Version, TokenFileError> {
        match fs::metadata(&self.path) {
            Ok(metadata) => {
                #[cfg(unix)]
                let number = std::os::unix::fs::MetadataExt::ino(&metadata);
                #[cfg(not(unix))]
                let number = 0;
                Ok((metadata.modified().ok(), metadata.len(), number))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((None, 0, 0)),
            Err(error) => Err(self.io(error)),
        }
    }

    fn io(&self, source: io::Error) -> TokenFileError {
        let path = self.path.clone();
        TokenFileError::Io { path, source }
    }
}

/// Whether `text` can be a scope (RFC 6749 §3.3).
pub(crate) fn is_scope(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    !text.is_empty() && text.chars().all(allowed)
}

/// The hash of a token. A token has 256 random bits, so the hash need not be slow.
fn hash(token: &str) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(HASH_DOMAIN);
    hasher.update(token);
    hasher.finalize().into()
}

fn random<const N: usize>() -> Result<String, TokenFileError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(TokenFileError::Randomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(verified: Option<Result<Verified, Rejected>>) -> String {
        verified
            .unwrap()
            .unwrap()
            .identity
            .principal
            .as_str()
            .to_owned()
    }

    #[test]
    fn a_token_is_good_until_it_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let file = TokenFile::at(directory.path().join("deep/tokens.json"));
        assert!(file.list().unwrap().is_empty());
        let ci = file.add("ci", &["read".to_owned()]).unwrap();
        let laptop = file.add("laptop", &[]).unwrap();
        let (ci, laptop) = (ci.token.expose(), laptop.token.expose());
        assert_eq!(principal(file.verify(ci)), "token:ci");
        assert_eq!(principal(file.verify(laptop)), "token:laptop");
        let granted = file.verify(ci).unwrap().unwrap().identity.scopes.unwrap();
        assert!(granted.contains("read"));

        // Another process has its own `TokenFile`.
        TokenFile::at(file.path()).remove("ci").unwrap();
        assert!(file.verify(ci).unwrap().is_err());
        assert_eq!(principal(file.verify(laptop)), "token:laptop");
        assert!(matches!(file.remove("ci"), Err(TokenFileError::Absent(_))));
    }

    #[test]
    fn only_the_whole_token_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let file = TokenFile::at(directory.path().join("tokens.json"));
        let made = file.add("ci", &[]).unwrap();
        let token = made.token.expose();
        let shorter = token.get(..token.len() - 1).unwrap();
        let other = file.add("other", &[]).unwrap();
        let (own, _) = token.split_once('.').unwrap();
        let (_, others) = other.token.expose().split_once('.').unwrap();
        for wrong in [
            shorter,
            &format!("{token}A"),
            &format!("{own}.{others}"),
            &format!("{own}."),
        ] {
            assert!(file.verify(wrong).unwrap().is_err());
        }
        assert!(
            file.verify("eyJhbGciOi").is_none(),
            "not the form of a static token"
        );
    }

    #[test]
    fn the_file_does_not_contain_the_token() {
        let directory = tempfile::tempdir().unwrap();
        let file = TokenFile::at(directory.path().join("tokens.json"));
        let made = file.add("ci", &[]).unwrap();
        let (_, secret) = made.token.expose().split_once('.').unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(!text.contains(secret) && !format!("{made:?}").contains(secret));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(file.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "others can read it");
        }
    }

    #[test]
    fn a_malformed_file_refuses_every_token() {
        let directory = tempfile::tempdir().unwrap();
        let file = TokenFile::at(directory.path().join("tokens.json"));
        let token = file.add("ci", &[]).unwrap().token;
        fs::write(file.path(), "no JSON").unwrap();
        let verdict = file.verify(token.expose()).unwrap();
        assert!(matches!(verdict, Err(Rejected::Unknown(_))));
        assert!(file.add("more", &[]).is_err(), "it must not be overwritten");
    }

    #[test]
    fn names_and_scopes_are_words() {
        let directory = tempfile::tempdir().unwrap();
        let file = TokenFile::at(directory.path().join("tokens.json"));
        for name in ["", "a b", "é", &"x".repeat(65)] {
            assert!(file.add(name, &[]).is_err(), "{name}");
        }
        for scope in ["", "a b", "a\"b"] {
            assert!(file.add("ok", &[scope.to_owned()]).is_err(), "{scope}");
        }
        file.add("ok", &["mcp:read".to_owned()]).unwrap();
        assert!(matches!(file.add("ok", &[]), Err(TokenFileError::Taken(_))));
    }
}
