//! `plexus backup`: a copy of Plexus's databases.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;

use crate::data;
use crate::output::print;
use crate::runtime::on_runtime;

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus backup
  plexus backup /mnt/safe/plexus.db

To go back to a copy, stop Plexus, move plexus.db, plexus.db-wal and plexus.db-shm away from the
folder that PLEXUS_DATA_DIR names, and put the copy there as plexus.db.";

/// Arguments of `plexus backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The new file; by default, one in the current folder that is named after the time.
    ///
    /// An existing file is not overwritten.
    file: Option<PathBuf>,
}

/// Copies every database, and prints the names of the copies.
pub(crate) fn run(arguments: BackupArgs) -> anyhow::Result<ExitCode> {
    on_runtime(async {
        let data = data::open()?;
        let file = arguments.file.unwrap_or_else(named_after_the_time);
        for (number, store) in data.stores().iter().enumerate() {
            let copy = match number {
                0 => file.clone(),
                _ => beside(&file, store.path()),
            };
            store.backup(&copy).await?;
            print(format!("{}\n", copy.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn named_after_the_time() -> PathBuf {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H%M%SZ").to_string();
    format!("plexus-{now}.db").into()
}

/// The name of the copy of a database with a file of its own: that file's name, after the name of
/// the main copy.
fn beside(copy: &Path, own: &Path) -> PathBuf {
    let mut name = OsString::from(copy);
    name.push(".");
    name.push(own.file_name().unwrap_or_default());
    name.into()
}
