//! Tokens in encrypted files, for all processes of a user.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use plexus_service::Boxed;
use sha2::{Digest as _, Sha256};
use zeroize::{Zeroize as _, Zeroizing};

use super::{Drawer, Holding, Vault, VaultError};

const SEALED: &str = "sealed";
/// What a file begins with, so that another form can be told from this one.
const FORM: &[u8] = b"plexus tokens 1\n";
const NONCE: usize = 24;
/// No account has more to keep than this.
const LONGEST: u64 = 1024 * 1024;

/// What a vault is opened with.
#[derive(Clone)]
pub struct VaultKey(Zeroizing<[u8; 32]>);

impl VaultKey {
    /// This key.
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

/// Keeps tokens in a folder, one encrypted file for each account.
///
/// A drawer is locked with a file of its own, so that processes wait for one another; the lock goes
/// with the process that held it. What is kept is replaced as a whole, and is on the disk before
/// anybody uses it.
#[derive(Debug, Clone)]
pub struct FileVault {
    place: Arc<Place>,
}

#[derive(Debug)]
struct Place {
    folder: PathBuf,
    key: VaultKey,
}

impl FileVault {
    /// The vault in `folder`, which is created when something is kept in it.
    pub fn new(folder: impl Into<PathBuf>, key: VaultKey) -> Self {
        let folder = folder.into();
        Self {
            place: Arc::new(Place { folder, key }),
        }
    }

    /// What is kept for all accounts, in no particular order.
    ///
    /// # Errors
    /// The folder or one of its files cannot be read.
    pub async fn list(&self) -> Result<Vec<Holding>, VaultError> {
        let place = Arc::clone(&self.place);
        blocking(move || place.list()).await
    }
}

impl Vault for FileVault {
    fn read(&self, account: &str) -> Boxed<Result<Holding, VaultError>> {
        let (place, name) = (Arc::clone(&self.place), name_of(account));
        Box::pin(blocking(move || place.read(&name)))
    }

    fn open(&self, account: &str) -> Boxed<Result<Box<dyn Drawer>, VaultError>> {
        let (place, name) = (Arc::clone(&self.place), name_of(account));
        Box::pin(blocking(move || {
            let lock = place.lock(&name)?;
            let holding = place.read(&name)?;
            let drawer = FileDrawer {
                place,
                name,
                holding,
                _lock: lock,
            };
            Ok(Box::new(drawer) as Box<dyn Drawer>)
        }))
    }
}

/// A drawer that this process has open. The lock ends with the file.
struct FileDrawer {
    place: Arc<Place>,
    name: String,
    holding: Holding,
    _lock: File,
}

impl Drawer for FileDrawer {
    fn holding(&self) -> &Holding {
        &self.holding
    }

    fn put(&mut self, holding: Holding) -> Boxed<Result<(), VaultError>> {
        self.holding.clone_from(&holding);
        let (place, name) = (Arc::clone(&self.place), self.name.clone());
        Box::pin(blocking(move || place.write(&name, &holding)))
    }
}

impl Place {
    fn list(&self) -> Result<Vec<Holding>, VaultError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| self.failed(&self.folder, error))?,
        };
        let mut holdings = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| self.failed(&self.folder, error))?;
            let name = entry.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".sealed"));
            if let Some(name) = name {
                holdings.push(self.read(name)?);
            }
        }
        Ok(holdings)
    }

    fn lock(&self, name: &str) -> Result<File, VaultError> {
        self.create_folder()?;
        let path = self.path(name, "lock");
        let lock = private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let lock = lock.map_err(|error| self.failed(&path, error))?;
        lock.lock().map_err(|error| self.failed(&path, error))?;
        Ok(lock)
    }

    fn read(&self, name: &str) -> Result<Holding, VaultError> {
        let path = self.path(name, SEALED);
        let bytes = match fs::metadata(&path).and_then(|about| match about.len() {
            0..=LONGEST => fs::read(&path),
            _ => Err(io::ErrorKind::FileTooLarge.into()),
        }) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Holding::default()),
            bytes => bytes.map_err(|error| self.failed(&path, error))?,
        };
        self.unsealed(name, &bytes)
            .ok_or_else(|| VaultError::Sealed {
                place: path.display().to_string(),
            })
    }

    fn unsealed(&self, name: &str, bytes: &[u8]) -> Option<Holding> {
        let (nonce, sealed) = bytes.strip_prefix(FORM)?.split_first_chunk::<NONCE>()?;
        let payload = Payload {
            msg: sealed,
            aad: name.as_bytes(),
        };
        let plain = self.cipher().decrypt(&XNonce::from(*nonce), payload).ok()?;
        serde_json::from_slice(&Zeroizing::new(plain)).ok()
    }

    /// Replaces a file as a whole: whoever reads meanwhile finds the old one.
    fn write(&self, name: &str, holding: &Holding) -> Result<(), VaultError> {
        let path = self.path(name, SEALED);
        let failed = |error| self.failed(&path, error);
        let plain = serde_json::to_vec(holding).map_err(|error| failed(error.into()))?;
        let plain = Zeroizing::new(plain);
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|error| failed(io::Error::other(error)))?;
        let payload = Payload {
            msg: &plain,
            aad: name.as_bytes(),
        };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_too_long| failed(io::ErrorKind::FileTooLarge.into()))?;
        let write = || {
            // Such a file is readable by its owner alone.
            let mut new = tempfile::NamedTempFile::new_in(&self.folder)?;
            new.write_all(FORM)?;
            new.write_all(&nonce)?;
            new.write_all(&sealed)?;
            new.as_file().sync_all()?;
            new.persist(&path)?;
            // Elsewhere a folder cannot be opened, and renaming is as lasting as it gets.
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

    #[expect(clippy::unused_self, reason = "it reads as part of the place")]
    fn failed(&self, path: &Path, source: io::Error) -> VaultError {
        let place = path.display().to_string();
        VaultError::System { place, source }
    }
}

/// A file's name must not tell what it is about, and must fit every file system.
fn name_of(account: &str) -> String {
    let digest = Sha256::digest(account);
    let (half, _) = digest.split_at(16);
    half.iter()
        .fold(String::new(), |name, byte| format!("{name}{byte:02x}"))
}

/// Files that only their owner can read.
fn private() -> OpenOptions {
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

    fn holding(server: &str) -> Holding {
        Holding {
            server: server.to_owned(),
            ..Holding::default()
        }
    }

    async fn put(vault: &FileVault, account: &str, server: &str) {
        let mut drawer = vault.open(account).await.unwrap();
        drawer.put(holding(server)).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_kept_is_found_again_by_whoever_has_the_key() {
        let folder = tempfile::tempdir().unwrap();
        put(&vault(folder.path(), 1), "a", "https://s.example").await;
        let again = vault(folder.path(), 1);
        assert_eq!(again.read("a").await.unwrap().server, "https://s.example");
        assert_eq!(again.read("b").await.unwrap(), Holding::default());
        assert_eq!(again.list().await.unwrap().len(), 1);
        let stranger = vault(folder.path(), 2).read("a").await;
        assert!(matches!(stranger, Err(VaultError::Sealed { .. })));
    }

    /// Neither contents nor names are readable, and nobody else can open the files.
    #[tokio::test]
    async fn files_tell_nothing() {
        let folder = tempfile::tempdir().unwrap();
        put(
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

    /// A file that was put in another's place is not taken for it.
    #[tokio::test]
    async fn accounts_are_not_exchanged() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(folder.path(), 1);
        put(&vault, "a", "https://a.example").await;
        let at = |account: &str| vault.place.path(&name_of(account), SEALED);
        fs::copy(at("a"), at("b")).unwrap();
        assert!(vault.read("b").await.is_err());
    }

    #[tokio::test]
    async fn an_open_drawer_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(folder.path(), 1);
        let mut drawer = vault.open("a").await.unwrap();
        let waiting = tokio_util::task::TaskTracker::new().spawn(vault.open("a"));
        drawer.put(holding("first")).await.unwrap();
        assert!(!waiting.is_finished());
        drop(drawer);
        assert_eq!(waiting.await.unwrap().unwrap().holding().server, "first");
    }
}
