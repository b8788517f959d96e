//! Locations of the configuration files.

use std::path::{Path, PathBuf};

use super::entry::{Scope, Source};

/// Locations of the configuration files (C24).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers and tests construct it field by field"
)]
pub struct Locations {
    /// Files named on the command line; a later one has precedence.
    pub explicit: Vec<PathBuf>,
    /// The project's directory.
    pub project_dir: PathBuf,
    /// The user's home directory, if there is one.
    pub home: Option<PathBuf>,
    /// The directory of the user's own `plexus.toml` and `servers.json`.
    pub config_dir: Option<PathBuf>,
}

/// The file name of Plexus's own settings.
pub const SETTINGS_FILE: &str = "plexus.toml";

/// The file name of the user's servers, in the directory of the user's settings. It is a file of
/// Plexus alone: Claude Code loads `~/.mcp.json` as well, and would have every server twice.
const SERVERS_FILE: &str = "servers.json";

impl Locations {
    /// The locations for a user with this environment.
    pub fn of(
        project_dir: impl Into<PathBuf>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let directory = |name: &str| {
            let path = environment(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let home = directory("HOME");
        let config = directory("XDG_CONFIG_HOME");
        let config = config.or_else(|| Some(home.as_ref()?.join(".config")));
        Self {
            explicit: Vec::new(),
            project_dir: project_dir.into(),
            home,
            config_dir: config.map(|config| config.join("plexus")),
        }
    }

    /// The file to which servers of a scope are added; `None` if the scope has no file.
    pub fn file(&self, scope: Scope) -> Option<PathBuf> {
        match scope {
            Scope::Explicit => self.explicit.last().cloned(),
            Scope::Local => Some(self.project_dir.join(LOCAL)),
            Scope::Project => Some(self.project_dir.join(SHARED)),
            Scope::User => Some(self.config_dir.as_ref()?.join(SERVERS_FILE)),
        }
    }

    /// The user's `~/.mcp.json`, which Claude Code loads as well; `None` without a home directory.
    pub fn shared_user_file(&self) -> Option<PathBuf> {
        Some(self.home.as_ref()?.join(SHARED))
    }

    /// The files that may define servers, whether they exist or not, in the order of precedence.
    pub fn sources(&self) -> Vec<Source> {
        let places = self.server_files().into_iter();
        places.map(|place| place.source).collect()
    }

    /// The base of relative paths in a file.
    pub(super) fn base<'a>(&'a self, source: &'a Source) -> &'a Path {
        let base = match source.scope {
            Scope::Explicit => source.file.parent(),
            Scope::Local | Scope::Project => Some(self.project_dir.as_path()),
            Scope::User => self.home.as_deref(),
        };
        base.unwrap_or(Path::new(""))
    }

    /// The files with servers, in the order of precedence.
    pub(super) fn server_files(&self) -> Vec<ServerFile> {
        let place = |scope, file| ServerFile::new(Source::new(scope, file), self);
        let explicit = self.explicit.iter().rev();
        let explicit = explicit.map(|file| place(Scope::Explicit, file.clone()));
        let of_project = [(Scope::Local, LOCAL), (Scope::Project, SHARED)];
        let of_project = of_project
            .into_iter()
            // In the home directory, the files have the user's scope.
            .filter(|_| !self.is_home())
            .map(|(scope, name)| place(scope, self.project_dir.join(name)));
        let own = self.config_dir.iter();
        let own = own.map(|directory| place(Scope::User, directory.join(SERVERS_FILE)));
        let of_user = self
            .home
            .iter()
            .flat_map(|home| [LOCAL, SHARED].map(|name| place(Scope::User, home.join(name))));
        explicit
            .chain(of_project)
            .chain(own)
            .chain(of_user)
            .collect()
    }

    /// The files with settings, in the order of precedence.
    pub(super) fn settings_files(&self) -> Vec<Source> {
        let of_project = (!self.is_home())
            .then(|| Source::new(Scope::Project, self.project_dir.join(SETTINGS_FILE)));
        let of_user = self
            .config_dir
            .iter()
            .map(|directory| Source::new(Scope::User, directory.join(SETTINGS_FILE)));
        of_project.into_iter().chain(of_user).collect()
    }

    /// The files with permissions, in the order of precedence.
    pub(super) fn permission_files(&self) -> Vec<Source> {
        let of_project = [(Scope::Local, LOCAL), (Scope::Project, PERMISSIONS)]
            .into_iter()
            .filter(|_| !self.is_home())
            .map(|(scope, name)| Source::new(scope, self.project_dir.join(name)));
        let of_user = self.home.iter().flat_map(|home| {
            [LOCAL, PERMISSIONS].map(|name| Source::new(Scope::User, home.join(name)))
        });
        of_project.chain(of_user).collect()
    }

    fn is_home(&self) -> bool {
        let Some(home) = &self.home else {
            return false;
        };
        *home == self.project_dir
            || std::fs::canonicalize(home)
                .ok()
                .zip(std::fs::canonicalize(&self.project_dir).ok())
                .is_some_and(|(home, project)| home == project)
    }
}

/// A file with servers.
pub(super) struct ServerFile {
    pub(super) source: Source,
    /// The base of relative paths in it.
    pub(super) base: PathBuf,
}

impl ServerFile {
    pub(super) fn new(source: Source, locations: &Locations) -> Self {
        Self {
            base: locations.base(&source).to_owned(),
            source,
        }
    }

    /// Whether the file is for servers only. A settings file of another client may have no servers
    /// at all.
    pub(super) fn is_for_servers(&self) -> bool {
        !self.source.file.ends_with(LOCAL)
    }
}

const LOCAL: &str = ".claude/settings.local.json";
const SHARED: &str = ".mcp.json";
/// The settings of Claude Code that a project shares, and those of a user.
const PERMISSIONS: &str = ".claude/settings.json";

#[cfg(test)]
mod tests {
    use super::*;

    /// C24, S000-24, S000-25, S000-26
    #[test]
    fn files_have_an_order() {
        let mut locations = Locations::of("/project", &|name| {
            (name == "HOME").then(|| "/home/ada".to_owned())
        });
        locations.explicit = vec!["/a.json".into(), "/b.json".into()];
        let files = locations.server_files();
        let files: Vec<_> = files
            .iter()
            .map(|place| (place.source.scope, place.source.file.to_str().unwrap()))
            .collect();
        let expected = [
            (Scope::Explicit, "/b.json"),
            (Scope::Explicit, "/a.json"),
            (Scope::Local, "/project/.claude/settings.local.json"),
            (Scope::Project, "/project/.mcp.json"),
            (Scope::User, "/home/ada/.config/plexus/servers.json"),
            (Scope::User, "/home/ada/.claude/settings.local.json"),
            (Scope::User, "/home/ada/.mcp.json"),
        ];
        assert_eq!(files, expected);
        assert_eq!(
            locations.config_dir,
            Some("/home/ada/.config/plexus".into())
        );
    }

    #[test]
    fn at_home_the_files_are_the_users() {
        let home = |_: &str| Some("/home/ada".to_owned());
        let locations = Locations::of("/home/ada", &home);
        let scopes = locations.server_files();
        assert!(scopes.iter().all(|place| place.source.scope == Scope::User));
        assert_eq!(locations.settings_files().len(), 1);
    }

    #[test]
    fn without_a_home_there_is_the_project() {
        let locations = Locations::of("/project", &|_| None);
        assert_eq!(locations.server_files().len(), 2);
        assert_eq!(locations.config_dir, None);
        assert_eq!(locations.file(Scope::User), None);
    }
}
