//! The stored data of this crate's services, and the paths of their databases.

mod handles;

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use plexus_mcp_store::{FILE_NAME, Migrations, OpenError, Store};

use crate::arbor::{self, Trees};
use crate::context::{self, Graph};
use crate::task::{self, Tasks};

/// The paths of the database files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataPaths {
    /// The directory of the shared database.
    pub directory: PathBuf,
    /// A separate database for tasks.
    pub tasks: Option<PathBuf>,
    /// A separate database for the context graph.
    pub context: Option<PathBuf>,
}

impl DataPaths {
    /// Uses one shared database in this directory.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            tasks: None,
            context: None,
        }
    }

    /// The paths that the environment sets: `PLEXUS_DATA_DIR`, or else the system's directory for
    /// user data; `BOSSMAN_DB_PATH` and `CONTEXTGRAPH_DB` for the separate databases. `None` if there
    /// is no home directory either.
    ///
    /// `variable` looks up a variable of the environment.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let file = |name| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some(PathBuf::from(value))
        };
        Some(Self {
            directory: plexus_mcp_store::data_dir(&variable)?,
            tasks: file("BOSSMAN_DB_PATH"),
            context: file("CONTEXTGRAPH_DB"),
        })
    }
}

/// The stored data of this crate's services. Cheap to clone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Data {
    /// The task list.
    pub tasks: Tasks,
    /// The context graph.
    pub context: Graph,
    /// The conversation trees.
    pub trees: Trees,
    shared: Store,
    stores: Vec<Store>,
}

impl Data {
    /// Opens the databases, creating them as needed. This blocks: call it when the program starts.
    ///
    /// # Errors
    /// A database cannot be used. The error says what to do.
    pub fn open(paths: &DataPaths) -> Result<Self, OpenError> {
        Self::open_with(paths, &[])
    }

    /// Like [`Self::open`], with these tables in the shared database as well.
    ///
    /// # Errors
    /// A database cannot be used. The error says what to do.
    pub fn open_with(paths: &DataPaths, tables: &[Migrations]) -> Result<Self, OpenError> {
        Self::build(paths, tables, Store::open)
    }

    /// Like [`Self::open`], but each database is opened at its first use. A database that cannot be
    /// used affects only the services that need it: their tools return the error until the cause is
    /// removed.
    pub fn at(paths: &DataPaths) -> Self {
        Self::at_with(paths, &[])
    }

    /// Like [`Self::at`], with these tables in the shared database as well.
    pub fn at_with(paths: &DataPaths, tables: &[Migrations]) -> Self {
        let Ok(data) = Self::build(paths, tables, |path, migrations| {
            Ok::<_, Infallible>(Store::at(path, migrations))
        });
        data
    }

    fn build<E>(
        paths: &DataPaths,
        tables: &[Migrations],
        store: impl Fn(&Path, &[Migrations]) -> Result<Store, E>,
    ) -> Result<Self, E> {
        let mut stores = Vec::new();
        let mut open = |path: &Path, migrations: &[Migrations]| {
            let store = store(path, migrations)?;
            stores.push(store.clone());
            Ok(store)
        };
        let mut migrations = vec![task::MIGRATIONS, context::MIGRATIONS, arbor::MIGRATIONS];
        migrations.extend_from_slice(tables);
        let shared = open(&paths.directory.join(FILE_NAME), &migrations)?;
        let mut own = |path: &Option<PathBuf>, migrations| match path {
            Some(path) => open(path, &[migrations]),
            None => Ok(shared.clone()),
        };
        let tasks = Tasks::new(own(&paths.tasks, task::MIGRATIONS)?);
        let context = Graph::new(own(&paths.context, context::MIGRATIONS)?);
        let trees = Trees::new(shared.clone());
        let trees = handles::with_resolvers(trees, &tasks, &context);
        Ok(Self {
            tasks,
            context,
            trees,
            shared,
            stores,
        })
    }

    /// The database that the services share.
    pub fn shared(&self) -> &Store {
        &self.shared
    }

    /// The databases, the shared one first.
    pub fn stores(&self) -> &[Store] {
        &self.stores
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{NewTask, TaskFilter};

    fn environment(variables: &[(&str, &str)]) -> Option<DataPaths> {
        DataPaths::from_environment(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn environment_variables_set_the_data_paths() {
        let mut expected = DataPaths::in_directory("here");
        assert_eq!(
            environment(&[("PLEXUS_DATA_DIR", "here"), ("BOSSMAN_DB_PATH", "")]),
            Some(expected.clone())
        );
        expected.tasks = Some("tasks.db".into());
        expected.context = Some("graph.db".into());
        let variables = [
            ("PLEXUS_DATA_DIR", "here"),
            ("BOSSMAN_DB_PATH", "tasks.db"),
            ("CONTEXTGRAPH_DB", "graph.db"),
        ];
        assert_eq!(environment(&variables), Some(expected));
        assert_eq!(environment(&[]), None);
    }

    async fn total(tasks: &Tasks) -> u64 {
        let all = TaskFilter {
            status: None,
            parent_id: None,
            limit: 1,
        };
        tasks.list(all).await.unwrap().total
    }

    /// With `BOSSMAN_DB_PATH`, tasks are in that file and not in the shared one.
    #[tokio::test]
    async fn tasks_may_have_a_file_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let shared = DataPaths::in_directory(folder.path().join("data"));
        let own = DataPaths {
            tasks: Some(folder.path().join("bossman/bossman.db")),
            ..shared.clone()
        };
        let new = NewTask {
            description: "Mow the lawn".to_owned(),
            parent_id: None,
            priority: 3,
            context: None,
        };
        Data::open(&own).unwrap().tasks.create(new).await.unwrap();
        assert_eq!(total(&Data::open(&own).unwrap().tasks).await, 1);
        assert_eq!(total(&Data::open(&shared).unwrap().tasks).await, 0);
    }
}
