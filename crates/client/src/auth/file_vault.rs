//! A token vault of encrypted files, which all processes of a user share.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use plexus_mcp_core::Boxed;
use sha2::{Digest as _, Sha256};
use zeroize::{Zeroize as _, Zeroizing};

use super::{LockedTokens, StoredTokens, Vault, VaultError};

const SEALED_EXTENSION: &str = "sealed";
/// The first bytes of a file. They name the version of the format.
const FILE_HEADER: &[u8] = b"plexus tokens 1\n";
const NONCE_BYTES: usize = 24;
/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The key that the files of a vault are encrypted with.
#[derive(Clone)]
pub struct VaultKey(Zeroizing<[u8; 32]>);

impl VaultKey {
    /// Wraps the bytes of a key, and erases `bytes`.
    pub fn new(mut bytes: [u8; 32]) -> Self {
        let key = Self(Zeroizing::new(bytes));
        bytes.zeroize();
        key
    }
}

impl std::fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VaultKey(…)")
    }
}

/// A vault in a folder, with one encrypted file for each entry.
///
/// Each entry has a lock file, so that processes wait for one another; the operating system releases
/// the lock of a process that ends. A file is replaced atomically, and is synced to disk before the
/// tokens in it are used.
#[derive(Debug, Clone)]
pub struct FileVault {
    vault: Arc<VaultFolder>,
}

#[derive(Debug)]
struct VaultFolder {
    folder: PathBuf,
    key: VaultKey,
}

impl FileVault {
    /// The vault in `folder`, which is created with the first entry.
    pub fn new(folder: impl Into<PathBuf>, key: VaultKey) -> Self {
        let folder = folder.into();
        Self {
            vault: Arc::new(VaultFolder { folder, key }),
        }
    }

    /// All entries, in no particular order.
    ///
    /// # Errors
    /// The folder or one of its files cannot be read.
    pub async fn list(&self) -> Result<Vec<StoredTokens>, VaultError> {
        let vault = Arc::clone(&self.vault);
        blocking(move || vault.list()).await
    }
}

impl Vault for FileVault {
    fn read(&self, key: &str) -> Boxed<Result<StoredTokens, VaultError>> {
        let (vault, name) = (Arc::clone(&self.vault), file_name(key));
        Box::pin(blocking(move || vault.read(&name)))
    }

    fn lock(&self, key: &str) -> Boxed<Result<Box<dyn LockedTokens>, VaultError>> {
        let (vault, name) = (Arc::clone(&self.vault), file_name(key));
        Box::pin(blocking(move || {
            let lock = vault.lock(&name)?;
            let tokens = vault.read(&name)?;
            let locked = LockedFile {
                vault,
                name,
                tokens,
                _lock: lock,
            };
            Ok(Box::new(locked) as Box<dyn LockedTokens>)
        }))
    }
}

/// An entry that this process has locked. Closing the lock file releases the lock.
struct LockedFile {
    vault: Arc<VaultFolder>,
    name: String,
    tokens: StoredTokens,
    _lock: File,
}

impl LockedTokens for LockedFile {
    fn tokens(&self) -> &StoredTokens {
        &self.tokens
    }

    fn replace(&mut self, tokens: StoredTokens) -> Boxed<Result<(), VaultError>> {
        self.tokens.clone_from(&tokens);
        let (vault, name) = (Arc::clone(&self.vault), self.name.clone());
        Box::pin(blocking(move || vault.write(&name, &tokens)))
    }
}

impl VaultFolder {
    fn list(&self) -> Result<Vec<StoredTokens>, VaultError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| self.failed(&self.folder, error))?,
        };
        let mut stored = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| self.failed(&self.folder, error))?;
            let name = entry.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".sealed"));
            if let Some(name) = name {
                stored.push(self.read(name)?);
            }
        }
        Ok(stored)
    }

    fn lock(&self, name: &str) -> Result<File, VaultError> {
        self.create_folder()?;
        let path = self.path(name, "lock");
        let lock = private_file()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let lock = lock.map_err(|error| self.failed(&path, error))?;
        lock.lock().map_err(|error| self.failed(&path, error))?;
        Ok(lock)
    }

    fn read(&self, name: &str) -> Result<StoredTokens, VaultError> {
        let path = self.path(name, SEALED_EXTENSION);
        let bytes = match fs::metadata(&path).and_then(|about| match about.len() {
            0..=MAX_FILE_BYTES => fs::read(&path),
            _ => Err(io::ErrorKind::FileTooLarge.into()),
        }) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(StoredTokens::default());
            }
            bytes => bytes.map_err(|error| self.failed(&path, error))?,
        };
        self.decrypt(name, &bytes)
            .ok_or_else(|| VaultError::Sealed {
                place: path.display().to_string(),
            })
    }

    /// Decrypts the bytes of a file. The file's name is authenticated, so that the file of one account
    /// cannot be used for another.
    fn decrypt(&self, name: &str, bytes: &[u8]) -> Option<StoredTokens> {
        let (nonce, sealed) = bytes
            .strip_prefix(FILE_HEADER)?
            .split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload {
            msg: sealed,
            aad: name.as_bytes(),
        };
        let plain = self.cipher().decrypt(&XNonce::from(*nonce), payload).ok()?;
        serde_json::from_slice(&Zeroizing::new(plain)).ok()
    }

    /// Replaces a file atomically: a concurrent reader sees the old contents or the new ones.
    fn write(&self, name: &str, tokens: &StoredTokens) -> Result<(), VaultError> {
        let path = self.path(name, SEALED_EXTENSION);
        let failed = |error| self.failed(&path, error);
        let plain = serde_json::to_vec(tokens).map_err(|error| failed(error.into()))?;
        let plain = Zeroizing::new(plain);
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|error| failed(io::Error::other(error)))?;
        let payload = Payload {
            msg: &plain,
            aad: name.as_bytes(),
        };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_too_long| failed(io::ErrorKind::FileTooLarge.into()))?;
        let write = || {
            // `NamedTempFile` creates a file that only its owner can read.
            let mut new = tempfile::NamedTempFile::new_in(&self.folder)?;
            new.write_all(FILE_HEADER)?;
            new.write_all(&nonce)?;
            new.write_all(&sealed)?;
            new.as_file().sync_all()?;
            new.persist(&path)?;
            // Syncs the rename itself. Other systems cannot open a folder.
            #[cfg(unix)]
            File::open(&self.folder)?.sync_all()?;
            Ok(())
        };
        write().map_err(failed)
    }

    fn create_folder(&self) -> Result<(), VaultError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let created = builder.create(&self.folder);
        created.map_err(|error| self.failed(&self.folder, error))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.key.0).into())
    }

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{name}.{extension}"))
    }

    #[expect(clippy::unused_self, reason = "it reads as part of the vault")]
    fn failed(&self, path: &Path, source: io::Error) -> VaultError {
        let place = path.display().to_string();
        VaultError::System { place, source }
    }
}

/// The file name of an entry: a hash, because it must not reveal the server or the account, and must
/// be valid on every file system.
fn file_name(key: &str) -> String {
    let digest = Sha256::digest(key);
    let (half, _) = digest.split_at(16);
    half.iter()
        .fold(String::new(), |name, byte| format!("{name}{byte:02x}"))
}

/// Options for a file that only its owner can read.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, VaultError> + Send + 'static,
) -> Result<T, VaultError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(VaultError::System {
            place: "the vault".to_owned(),
            source: io::Error::other(error),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(folder: &Path, key: u8) -> FileVault {
        FileVault::new(folder.join("tokens"), VaultKey::new([key; 32]))
    }

    fn tokens(server: &str) -> StoredTokens {
        StoredTokens {
            server: server.to_owned(),
            ..StoredTokens::default()
        }
    }

    async fn store(vault: &FileVault, key: &str, server: &str) {
        let mut locked = vault.lock(key).await.unwrap();
        locked.replace(tokens(server)).await.unwrap();
    }

    #[tokio::test]
    async fn tokens_are_read_with_the_same_key_only() {
        let folder = tempfile::tempdir().unwrap();
        store(&vault(folder.path(), 1), "a", "https://s.example").await;
        let again = vault(folder.path(), 1);
        assert_eq!(again.read("a").await.unwrap().server, "https://s.example");
        assert_eq!(again.read("b").await.unwrap(), StoredTokens::default());
        assert_eq!(again.list().await.unwrap().len(), 1);
        let stranger = vault(folder.path(), 2).read("a").await;
        assert!(matches!(stranger, Err(VaultError::Sealed { .. })));
    }

    /// Contents and names are encrypted, and other users cannot open the files.
    #[tokio::test]
    async fn file_names_and_contents_are_encrypted() {
        let folder = tempfile::tempdir().unwrap();
        store(
            &vault(folder.path(), 1),
            "https://s.example",
            "https://s.example",
        )
        .await;
        for entry in fs::read_dir(folder.path().join("tokens")).unwrap() {
            let entry = entry.unwrap();
            assert!(!entry.file_name().to_string_lossy().contains("example"));
            let bytes = fs::read(entry.path()).unwrap();
            assert!(!bytes.windows(7).any(|part| part == b"example"));
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                let mode = entry.metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o077, 0, "{:?}", entry.path());
            }
        }
    }

    /// A file that is copied over the file of another account is rejected.
    #[tokio::test]
    async fn accounts_are_not_exchanged() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(folder.path(), 1);
        store(&vault, "a", "https://a.example").await;
        let at = |key: &str| vault.vault.path(&file_name(key), SEALED_EXTENSION);
        fs::copy(at("a"), at("b")).unwrap();
        assert!(vault.read("b").await.is_err());
    }

    #[tokio::test]
    async fn a_locked_entry_is_locked_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(folder.path(), 1);
        let mut locked = vault.lock("a").await.unwrap();
        let waiting = tokio_util::task::TaskTracker::new().spawn(vault.lock("a"));
        locked.replace(tokens("first")).await.unwrap();
        assert!(!waiting.is_finished());
        drop(locked);
        assert_eq!(waiting.await.unwrap().unwrap().tokens().server, "first");
    }
}
