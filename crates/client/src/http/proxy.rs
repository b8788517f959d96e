use std::sync::Arc;

use http::header::HeaderValue;
use http::{Uri, uri::Scheme};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::origin::Origin;

/// Which requests go through which proxy. Those to this machine never do.
///
/// Passwords of proxies do not show in the `Debug` text.
#[derive(Debug, Clone)]
pub struct ProxyRules(Option<Arc<Matcher>>);

impl ProxyRules {
    /// No request goes through a proxy.
    pub fn none() -> Self {
        Self::from_variables(|_name| None)
    }

    /// The rules that the environment of this process gives.
    pub fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var_os(name)?.into_string().ok())
    }

    /// The rules in `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, which may also be
    /// written in lower case. An empty one counts as not set.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| {
            [name.to_owned(), name.to_ascii_lowercase()]
                .iter()
                .find_map(|name| variable(name).filter(|value| !value.trim().is_empty()))
                .unwrap_or_default()
        };
        let proxy = |name: &str| {
            let proxy = value(name);
            if !proxy.is_empty() && !is_proxy(&proxy) {
                tracing::warn!(variable = name, "not the url of a proxy, ignored");
            }
            proxy
        };
        let [http, https, all] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].map(proxy);
        if [&http, &https, &all].iter().all(|proxy| proxy.is_empty()) {
            return Self(None);
        }
        let matcher = Matcher::builder()
            .http(http)
            .https(https)
            .all(all)
            .no(value("NO_PROXY"))
            .build();
        Self(Some(Arc::new(matcher)))
    }

    /// The proxy for a request to `target`, if there is one.
    pub(super) fn proxy(&self, target: &Uri) -> Option<Intercept> {
        let rules = self.0.as_ref()?;
        let is_local = Origin::of(target).is_ok_and(|origin| origin.is_loopback());
        if is_local {
            return None;
        }
        rules.intercept(target)
    }

    /// The `Proxy-Authorization` header of a request to `target`. `None` for HTTPS: the CONNECT request
    /// of the tunnel has it.
    pub(super) fn authorization(&self, target: &Uri) -> Option<HeaderValue> {
        if target.scheme() != Some(&Scheme::HTTP) {
            return None;
        }
        self.proxy(target)?.basic_auth().cloned()
    }
}

fn is_proxy(value: &str) -> bool {
    let anywhere = Uri::from_static("http://anywhere.invalid/");
    let matcher = Matcher::builder().all(value).build();
    matcher.intercept(&anywhere).is_some()
}
