//! `plexus healthcheck`: asks whether a gateway answers over HTTP.
//!
//! It is for containers, whose image has no other program that could ask.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use http::{Request, StatusCode, Uri};
use plexus_mcp_client::http::{HttpClient, HttpClientOptions};

use crate::cli::DEFAULT_ADDRESS;
use crate::output::print;
use crate::runtime;

/// A gateway answers at once, or it is not healthy.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus healthcheck
  plexus healthcheck http://127.0.0.1:8080

The exit code is 0 if the gateway answered, 1 if not, and 2 for wrong usage.";

/// Arguments of `plexus healthcheck`.
#[derive(Debug, Args)]
pub(crate) struct HealthcheckArgs {
    /// The address of the gateway; by default that of `plexus serve`.
    #[arg(value_name = "URL", value_parser = parse_url)]
    url: Option<Uri>,
}

/// Runs `plexus healthcheck`.
pub(crate) fn run(arguments: &HealthcheckArgs) -> anyhow::Result<ExitCode> {
    let url = match &arguments.url {
        Some(url) => url.clone(),
        None => parse_url(&format!("http://{DEFAULT_ADDRESS}")).map_err(anyhow::Error::msg)?,
    };
    runtime::on_runtime(async {
        let mut options = HttpClientOptions::default();
        options.connect_timeout = ANSWER_TIMEOUT;
        options.headers_timeout = Some(ANSWER_TIMEOUT);
        let client = HttpClient::new(&options)?;
        let request = Request::get(&url).body(Vec::new().into())?;
        let answer = client.send(request).await;
        let status = answer
            .with_context(|| format!("{url} does not answer"))?
            .status;
        ensure!(status == StatusCode::OK, "{url} answered with {status}");
        print(format!("{url} answers\n"))?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The URL at which the gateway with this address tells its health.
fn parse_url(text: &str) -> Result<Uri, String> {
    let url: Uri = text.parse().map_err(|error| format!("{error}"))?;
    match (url.scheme_str(), url.authority()) {
        (Some(scheme @ ("http" | "https")), Some(authority)) => {
            let health = format!("{scheme}://{authority}/health").parse();
            health.map_err(|error| format!("{error}"))
        }
        _ => Err("it must begin with http:// or https://".to_owned()),
    }
}
