//! What the settings say where the command line says nothing.

use std::str::FromStr;

use anyhow::Context;
use plexus_hub::config::{self, Serve};

use super::DownstreamArgs;
use super::values::parse_path;
use crate::surroundings::{environment, locations};

impl DownstreamArgs {
    /// These arguments, with what they leave open as `[serve]` in `plexus.toml` says.
    ///
    /// # Errors
    /// The settings make no sense, or not together with the arguments.
    pub(crate) fn filled(&self) -> anyhow::Result<Self> {
        // Who serves no HTTP need not know how.
        if self.address().is_none() {
            return Ok(self.clone());
        }
        let loaded = config::load(&locations()?, &environment);
        self.filled_by(&loaded.settings.serve)
    }

    fn filled_by(&self, settings: &Serve) -> anyhow::Result<Self> {
        let mut filled = self.clone();
        if !self.stdio {
            filled.http = self.http.or(settings.http);
        }
        filled.sse |= settings.sse;
        if let (None, Some(path)) = (&self.path, &settings.path) {
            let path = parse_path(path).map_err(anyhow::Error::msg);
            filled.path = Some(path.context("plexus.toml: serve.path")?);
        }
        let (hosts, origins) = (&settings.allow_hosts, &settings.allow_origins);
        filled.allow_host.extend(parsed("allow_hosts", hosts)?);
        filled
            .allow_origin
            .extend(parsed("allow_origins", origins)?);
        let taken = "plexus.toml: serve.path: HTTP+SSE needs this path for itself";
        filled.check().ok().context(taken)?;
        Ok(filled)
    }
}

fn parsed<T>(key: &str, texts: &[String]) -> anyhow::Result<Vec<T>>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let parse = |text: &String| {
        let parsed = text.parse::<T>();
        parsed.with_context(|| format!("plexus.toml: serve.{key}: {text:?}"))
    };
    texts.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;

    fn arguments(arguments: &[&str]) -> DownstreamArgs {
        let arguments = [&["plexus", "serve"], arguments].concat();
        let command = Cli::try_parse_from(arguments).unwrap().into_command();
        match command.unwrap() {
            Command::Serve(arguments) => arguments.downstream,
            other => panic!("{other:?}"),
        }
    }

    fn settings() -> Serve {
        let mut settings = Serve::default();
        settings.http = Some("127.0.0.1:9".parse().unwrap());
        settings.sse = true;
        settings.path = Some("/there".to_owned());
        settings.allow_hosts = vec!["plexus.local".to_owned()];
        settings.allow_origins = vec!["https://app.example".to_owned()];
        settings
    }

    #[test]
    fn settings_fill_in_what_is_not_said() {
        let filled = arguments(&[]).filled_by(&settings()).unwrap();
        assert_eq!(filled.address(), settings().http);
        let options = filled.http_options();
        assert_eq!(options.path, "/there");
        assert!(options.sse.is_some());
        assert_eq!(
            (options.allowed_hosts.len(), options.allowed_origins.len()),
            (1, 1)
        );

        let said = [
            "--http",
            "127.0.0.1:7",
            "--path",
            "/here",
            "--allow-host",
            "a.example",
        ];
        let filled = arguments(&said).filled_by(&settings()).unwrap();
        assert_eq!(filled.address(), Some("127.0.0.1:7".parse().unwrap()));
        let options = filled.http_options();
        assert_eq!(options.path, "/here");
        assert_eq!(options.allowed_hosts.len(), 2);
        // Who wants no HTTP gets none.
        assert_eq!(arguments(&["--stdio"]).filled().unwrap().address(), None);
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let with = |change: fn(&mut Serve)| {
            let mut settings = settings();
            change(&mut settings);
            settings
        };
        let relative = with(|serve| serve.path = Some("there".to_owned()));
        let taken = with(|serve| serve.path = Some("/sse".to_owned()));
        let no_host = with(|serve| serve.allow_hosts = vec!["a b".to_owned()]);
        let no_origin = with(|serve| serve.allow_origins = vec!["app".to_owned()]);
        for (key, settings) in [
            ("path", relative),
            ("path", taken),
            ("allow_hosts", no_host),
            ("allow_origins", no_origin),
        ] {
            let error = arguments(&[]).filled_by(&settings).unwrap_err();
            assert!(
                format!("{error:#}").starts_with(&format!("plexus.toml: serve.{key}")),
                "{error:#}"
            );
        }
    }
}
