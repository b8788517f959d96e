//! What the activations remember, and where.

mod handles;

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use plexus_store::{FILE_NAME, Migrations, OpenError, Store};

use crate::arbor::{self, Trees};
use crate::claudecode::{self, Sessions};
use crate::cone::{self, Cones};
use crate::context::{self, Graph};
use crate::loopback::{self, Permissions};
use crate::model::Models;
use crate::task::{self, Tasks};

/// Where the activations keep their data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Places {
    /// The folder of the database that all share.
    pub directory: PathBuf,
    /// A database for the tasks alone.
    pub tasks: Option<PathBuf>,
    /// A database for the context graph alone.
    pub context: Option<PathBuf>,
}

impl Places {
    /// Everything in one database in this folder.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            tasks: None,
            context: None,
        }
    }

    /// What the environment asks for: `PLEXUS_DATA_DIR`, or the place that the system has for such
    /// things, with the founding systems' `BOSSMAN_DB_PATH` and `CONTEXTGRAPH_DB` for files of
    /// their own. `None` if it does not even name a home.
    ///
    /// `variable` looks up a variable of the environment.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let file = |name| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some(PathBuf::from(value))
        };
        Some(Self {
            directory: plexus_store::data_dir(&variable)?,
            tasks: file("BOSSMAN_DB_PATH"),
            context: file("CONTEXTGRAPH_DB"),
        })
    }
}

/// What the activations remember. Cheap to clone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Data {
    /// The task list.
    pub tasks: Tasks,
    /// The context graph.
    pub context: Graph,
    /// Trees of texts.
    pub trees: Trees,
    /// Conversations with models.
    pub cones: Cones,
    /// What agents ask permission for.
    pub permissions: Permissions,
    /// The sessions of agents.
    pub sessions: Sessions,
    stores: Vec<Store>,
}

impl Data {
    /// Opens the databases, creating them as needed. This blocks: it is meant for the start of a
    /// program.
    ///
    /// # Errors
    /// A database cannot be used. The error says what to do.
    pub fn open(places: &Places) -> Result<Self, OpenError> {
        Self::over(places, Store::open)
    }

    /// The same, but a database is opened when it is first needed. One that cannot be used costs
    /// only the activations that stand on it: their tools say what is wrong, and work as soon as it
    /// is put in order.
    pub fn at(places: &Places) -> Self {
        let Ok(data) = Self::over(places, |path, migrations| {
            Ok::<_, Infallible>(Store::at(path, migrations))
        });
        data
    }

    fn over<E>(
        places: &Places,
        store: impl Fn(&Path, &[Migrations]) -> Result<Store, E>,
    ) -> Result<Self, E> {
        let mut stores = Vec::new();
        let mut open = |path: &Path, migrations: &[Migrations]| {
            let store = store(path, migrations)?;
            stores.push(store.clone());
            Ok(store)
        };
        let migrations = [
            task::MIGRATIONS,
            context::MIGRATIONS,
            arbor::MIGRATIONS,
            cone::MIGRATIONS,
            loopback::MIGRATIONS,
            claudecode::MIGRATIONS,
        ];
        let shared = open(&places.directory.join(FILE_NAME), &migrations)?;
        let mut own = |path: &Option<PathBuf>, migrations| match path {
            Some(path) => open(path, &[migrations]),
            None => Ok(shared.clone()),
        };
        let tasks = Tasks::new(own(&places.tasks, task::MIGRATIONS)?);
        let context = Graph::new(own(&places.context, context::MIGRATIONS)?);
        let trees = Trees::new(shared.clone());
        let trees = handles::resolving(trees, &tasks, &context);
        let cones = Cones::new(trees.clone(), Models::none());
        Ok(Self {
            tasks,
            context,
            trees,
            cones,
            permissions: Permissions::new(shared.clone()),
            sessions: Sessions::new(shared),
            stores,
        })
    }

    /// The databases, that which all share first.
    pub fn stores(&self) -> &[Store] {
        &self.stores
    }

    /// The same data, where conversations are with these models.
    #[must_use]
    pub fn with_models(mut self, models: Models) -> Self {
        self.cones = Cones::new(self.trees.clone(), models);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Filter, NewTask};

    fn environment(variables: &[(&str, &str)]) -> Option<Places> {
        Places::from_environment(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_environment_says_where() {
        let mut expected = Places::in_directory("here");
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
        let all = Filter {
            status: None,
            parent_id: None,
            limit: 1,
        };
        tasks.list(all).await.unwrap().total
    }

    /// Bossman's own file has its tasks, and the shared one does not.
    #[tokio::test]
    async fn tasks_may_have_a_file_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let shared = Places::in_directory(folder.path().join("data"));
        let own = Places {
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
