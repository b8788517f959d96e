//! Combines the command line with `[serve]` in the settings.

use std::str::FromStr;

use anyhow::Context;
use plexus_mcp_config::{self as config, Serve};

use super::DownstreamArgs;
use super::values::parse_path;
use crate::process_env::{environment, locations};

impl DownstreamArgs {
    /// These arguments, with defaults from `[serve]` in `plexus.toml`.
    ///
    /// # Errors
    /// The settings are invalid, or contradict the arguments.
    pub(crate) fn with_settings(&self) -> anyhow::Result<Self> {
        // Without HTTP, the settings do not matter.
        if self.address().is_none() {
            return Ok(self.clone());
        }
        let loaded = config::load(&locations()?, &environment);
        self.with_serve_settings(&loaded.settings.serve)
    }

    fn with_serve_settings(&self, settings: &Serve) -> anyhow::Result<Self> {
        let mut with_settings = self.clone();
        if !self.stdio {
            with_settings.http = self.http.or(settings.http);
        }
        with_settings.sse |= settings.sse;
        if let (None, Some(path)) = (&self.path, &settings.path) {
            let path = parse_path(path).map_err(anyhow::Error::msg);
            with_settings.path = Some(path.context("plexus.toml: serve.path")?);
        }
        let (hosts, origins) = (&settings.allow_hosts, &settings.allow_origins);
        with_settings
            .allow_host
            .extend(parsed("allow_hosts", hosts)?);
        with_settings
            .allow_origin
            .extend(parsed("allow_origins", origins)?);
        let taken = "plexus.toml: serve.path: HTTP+SSE needs this path for itself";
        with_settings.check("serve").ok().context(taken)?;
        Ok(with_settings)
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
        let with_settings = arguments(&[]).with_serve_settings(&settings()).unwrap();
        assert_eq!(with_settings.address(), settings().http);
        let options = with_settings.http_options();
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
        let with_settings = arguments(&said).with_serve_settings(&settings()).unwrap();
        assert_eq!(
            with_settings.address(),
            Some("127.0.0.1:7".parse().unwrap())
        );
        let options = with_settings.http_options();
        assert_eq!(options.path, "/here");
        assert_eq!(options.allowed_hosts.len(), 2);
        // `--stdio` alone serves no HTTP.
        assert_eq!(
            arguments(&["--stdio"]).with_settings().unwrap().address(),
            None
        );
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
            let error = arguments(&[]).with_serve_settings(&settings).unwrap_err();
            assert!(
                format!("{error:#}").starts_with(&format!("plexus.toml: serve.{key}")),
                "{error:#}"
            );
        }
    }
}
