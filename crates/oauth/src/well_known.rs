//! The well-known URLs of metadata documents, in the order in which they are tried.

use url::Url;

const PROTECTED_RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION_SERVER_PATH: &str = "/.well-known/oauth-authorization-server";
const OPENID_CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";

/// The possible URLs of the metadata of the resource at `server`: first for its path, then for its
/// origin (AUTH11-02).
pub fn of_resource(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut urls = Vec::new();
    if !path.is_empty() {
        let mut url = at(server, &format!("{PROTECTED_RESOURCE_PATH}{path}"));
        url.set_query(server.query());
        urls.push(url);
    }
    urls.push(at(server, PROTECTED_RESOURCE_PATH));
    urls
}

/// The possible URLs of the metadata of `issuer` (AUTH11-05).
pub fn of_issuer(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut urls = vec![
        at(issuer, &format!("{AUTHORIZATION_SERVER_PATH}{path}")),
        at(issuer, &format!("{OPENID_CONFIGURATION_PATH}{path}")),
    ];
    if !path.is_empty() {
        urls.push(at(issuer, &format!("{path}{OPENID_CONFIGURATION_PATH}")));
    }
    urls
}

/// The URL of the metadata of a server of 2025-03-26, which is its own authorization server
/// (AUTH03-06).
pub fn of_origin(server: &Url) -> Url {
    at(server, AUTHORIZATION_SERVER_PATH)
}

fn at(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(urls: Vec<Url>) -> Vec<String> {
        urls.into_iter().map(Into::into).collect()
    }

    /// AUTH11-02
    #[test]
    fn a_resource_has_metadata_for_its_path_or_its_origin() {
        let urls = |url: &str| texts(of_resource(&Url::parse(url).unwrap()));
        let root = "https://s.example/.well-known/oauth-protected-resource";
        assert_eq!(urls("https://s.example"), [root]);
        assert_eq!(urls("https://s.example/"), [root]);
        assert_eq!(
            urls("https://s.example/a/mcp?x=1"),
            [&format!("{root}/a/mcp?x=1"), root]
        );
    }

    /// AUTH11-05
    #[test]
    fn an_issuer_has_two_or_three_metadata_urls() {
        let urls = |url: &str| texts(of_issuer(&Url::parse(url).unwrap()));
        assert_eq!(
            urls("https://as.example/"),
            [
                "https://as.example/.well-known/oauth-authorization-server",
                "https://as.example/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            urls("https://as.example/tenant1"),
            [
                "https://as.example/.well-known/oauth-authorization-server/tenant1",
                "https://as.example/.well-known/openid-configuration/tenant1",
                "https://as.example/tenant1/.well-known/openid-configuration",
            ]
        );
    }
}
