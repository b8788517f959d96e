//! The places where metadata may be, in the order in which they are tried.

use url::Url;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Where the metadata of the resource at `server` may be: first for its path, then for all of its
/// origin (AUTH11-02).
pub fn of_resource(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut places = Vec::new();
    if !path.is_empty() {
        let mut place = at(server, &format!("{RESOURCE}{path}"));
        place.set_query(server.query());
        places.push(place);
    }
    places.push(at(server, RESOURCE));
    places
}

/// Where the metadata of `issuer` may be (AUTH11-05).
pub fn of_issuer(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        at(issuer, &format!("{OAUTH}{path}")),
        at(issuer, &format!("{OPENID}{path}")),
    ];
    if !path.is_empty() {
        places.push(at(issuer, &format!("{path}{OPENID}")));
    }
    places
}

/// Where a server of 2025-03-26, which is its own authorization server, has its metadata
/// (AUTH03-06).
pub fn of_origin(server: &Url) -> Url {
    at(server, OAUTH)
}

fn at(base: &Url, path: &str) -> Url {
    let mut place = base.clone();
    place.set_path(path);
    place.set_query(None);
    place.set_fragment(None);
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(places: Vec<Url>) -> Vec<String> {
        places.into_iter().map(Into::into).collect()
    }

    /// AUTH11-02
    #[test]
    fn a_resource_has_metadata_for_its_path_or_its_origin() {
        let places = |url: &str| texts(of_resource(&Url::parse(url).unwrap()));
        let root = "https://s.example/.well-known/oauth-protected-resource";
        assert_eq!(places("https://s.example"), [root]);
        assert_eq!(places("https://s.example/"), [root]);
        assert_eq!(
            places("https://s.example/a/mcp?x=1"),
            [&format!("{root}/a/mcp?x=1"), root]
        );
    }

    /// AUTH11-05
    #[test]
    fn an_issuer_has_metadata_in_two_or_three_places() {
        let places = |url: &str| texts(of_issuer(&Url::parse(url).unwrap()));
        assert_eq!(
            places("https://as.example/"),
            [
                "https://as.example/.well-known/oauth-authorization-server",
                "https://as.example/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            places("https://as.example/tenant1"),
            [
                "https://as.example/.well-known/oauth-authorization-server/tenant1",
                "https://as.example/.well-known/openid-configuration/tenant1",
                "https://as.example/tenant1/.well-known/openid-configuration",
            ]
        );
    }
}
