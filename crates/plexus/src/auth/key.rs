//! The key of the token vault: in the desktop's keyring if there is one, else in a file that only
//! its owner can read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use plexus_mcp_client::auth::{VaultError, VaultKey};

use crate::keyring::{HexByte, KeyringEntry};

const KEY_FILE: &str = "key";
const LOCK_FILE: &str = "key.lock";
/// The content of the key file if the key is in the keyring.
const IN_KEYRING: &str = "keyring";
const SERVICE: &str = "plexus";
const ACCOUNT: &str = "vault";
/// How long a keyring query may take: the user may have to unlock it.
const KEYRING_TIMEOUT: Duration = Duration::from_mins(1);
/// How long the first query may take, which finds out whether there is a keyring.
const KEYRING_FIRST_TIMEOUT: Duration = Duration::from_secs(10);

/// The key, if there is one.
pub(super) async fn find(folder: &Path) -> Result<Option<VaultKey>, VaultError> {
    let path = folder.join(KEY_FILE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| failed(&path, error))?,
    };
    let text = text.trim();
    let found = if text == IN_KEYRING {
        entry().lookup(KEYRING_TIMEOUT).await
    } else {
        Some(text.to_owned())
    };
    let key = found.and_then(|text| parse(&text));
    let place = || {
        if text == IN_KEYRING {
            "the keyring".to_owned()
        } else {
            path.display().to_string()
        }
    };
    let key = key.ok_or_else(|| VaultError::NoKey { place: place() });
    key.map(Some)
}

/// The key, created if there is none.
pub(super) async fn find_or_make(folder: &Path) -> Result<VaultKey, VaultError> {
    if let Some(key) = find(folder).await? {
        return Ok(key);
    }
    let path = folder.join(KEY_FILE);
    // Of several processes that start at once, one creates the key, and the others read it.
    let _lock = lock(folder).await.map_err(|error| failed(&path, error))?;
    if let Some(key) = find(folder).await? {
        return Ok(key);
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| failed(&path, io::Error::other(error)))?;
    let text: String = bytes
        .iter()
        .map(|byte| HexByte(*byte).to_string())
        .collect();
    // The key counts as stored only if the keyring returns it.
    let in_keyring = entry()
        .store("Plexus tokens", &text, KEYRING_FIRST_TIMEOUT)
        .await;
    let contents = if in_keyring { IN_KEYRING } else { &text };
    write_new(folder, &path, contents).map_err(|error| failed(&path, error))?;
    find(folder).await?.ok_or_else(|| VaultError::NoKey {
        place: path.display().to_string(),
    })
}

/// Locks the key file against other processes, until the file is dropped or this process exits.
async fn lock(folder: &Path) -> io::Result<File> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    let path = folder.join(LOCK_FILE);
    let locking = tokio::task::spawn_blocking(move || {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        file.lock()?;
        Ok(file)
    });
    locking.await.map_err(io::Error::other)?
}

fn write_new(folder: &Path, path: &Path, contents: &str) -> io::Result<()> {
    // A temporary file is readable by its owner only.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{contents}")?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    Ok(())
}

fn entry() -> KeyringEntry {
    KeyringEntry {
        service: SERVICE.to_owned(),
        account: ACCOUNT.to_owned(),
    }
}

fn parse(text: &str) -> Option<VaultKey> {
    let mut bytes = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(VaultKey::new(bytes))
}

fn failed(path: &Path, source: io::Error) -> VaultError {
    let place = path.display().to_string();
    VaultError::System { place, source }
}
