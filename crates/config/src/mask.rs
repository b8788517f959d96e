//! Masking of text that looks like a secret in arguments and URLs.

use plexus_mcp_core::is_secret_name;

use super::secret::MASK;
use super::text::Text;

/// Arguments as they are written, with secrets masked.
pub(super) fn arguments(args: &[Text]) -> Vec<String> {
    let mut flag = "";
    args.iter()
        .map(|arg| {
            let written = arg.written();
            let shown = argument(flag, written);
            flag = if written.starts_with('-') {
                written
            } else {
                ""
            };
            shown
        })
        .collect()
}

/// A URL with its password, its query and its long opaque parts masked.
pub(super) fn url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (address, query) = match rest.split_once('?') {
        Some((address, query)) => (address, Some(query)),
        None => (rest, None),
    };
    let (authority, path) = match address.split_once('/') {
        Some((authority, path)) => (authority, Some(path)),
        None => (address, None),
    };
    let mut shown = format!("{scheme}://");
    match authority.rsplit_once('@') {
        Some((_, host)) => shown.extend([MASK, "@", host]),
        None => shown.push_str(authority),
    }
    for part in path.into_iter().flat_map(|path| path.split('/')) {
        shown.push('/');
        shown.push_str(if is_opaque(part) { MASK } else { part });
    }
    if let Some(query) = query {
        shown.push('?');
        let parameters: Vec<_> = query.split('&').map(parameter).collect();
        shown.push_str(&parameters.join("&"));
    }
    shown
}

fn argument(flag: &str, written: &str) -> String {
    // A flag in front of the value: `--token x`, `-H 'Authorization: x'`, `-e KEY=x`.
    if matches!(flag, "-H" | "--header") {
        return masked_after(written, ':');
    }
    if matches!(flag, "-e" | "--env") && written.contains('=') {
        return masked_after(written, '=');
    }
    if !flag.contains('=') && is_secret_name(flag) && !written.starts_with('-') {
        return masked(written).to_owned();
    }
    match written.split_once('=') {
        Some((name, _)) if is_secret_name(name) => masked_after(written, '='),
        _ if has_known_prefix(written) => masked(written).to_owned(),
        _ => url(written),
    }
}

/// A reference to a variable is not masked.
fn masked(written: &str) -> &str {
    let is_reference = written.starts_with("${") && written.ends_with('}');
    if is_reference && !written.contains(":-") {
        written
    } else {
        MASK
    }
}

fn masked_after(written: &str, separator: char) -> String {
    match written.split_once(separator) {
        Some((name, value)) => format!("{name}{separator}{}", masked(value.trim_start())),
        None => masked(written).to_owned(),
    }
}

fn parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, value)) => format!("{name}={}", masked(value)),
        None => masked(parameter).to_owned(),
    }
}

/// Whether the text has the prefix of a well-known service's tokens.
fn has_known_prefix(text: &str) -> bool {
    const PREFIXES: [&str; 9] = [
        "sk-",
        "ghp_",
        "gho_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "AKIA",
        "AIza",
    ];
    PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

/// Whether a part of a path is random; some services put their key there.
fn is_opaque(part: &str) -> bool {
    part.len() >= 20
        && part.bytes().any(|byte| byte.is_ascii_digit())
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(args: &[&str]) -> String {
        let args: Vec<_> = args.iter().map(|arg| Text::literal(*arg)).collect();
        arguments(&args).join(" ")
    }

    #[test]
    fn secrets_in_arguments_are_masked() {
        let cases: [(&[&str], &str); 10] = [
            (&["-y", "server", "/data"], "-y server /data"),
            (&["--api-key", "x1", "run"], "--api-key •••• run"),
            (&["--api-key=x1"], "--api-key=••••"),
            (&["--token", "--verbose"], "--token --verbose"),
            (&["-e", "PORT=x1"], "-e PORT=••••"),
            (&["-e", "GITHUB_TOKEN"], "-e GITHUB_TOKEN"),
            (
                &["--header", "Authorization: Bearer x1"],
                "--header Authorization:••••",
            ),
            (&["ghp_x1"], "••••"),
            (&["--token", "${TOKEN}"], "--token ${TOKEN}"),
            (&["--token", "${TOKEN:-x1}"], "--token ••••"),
        ];
        for (args, expected) in cases {
            assert_eq!(shown(args), expected);
        }
    }

    #[test]
    fn secrets_in_addresses_are_masked() {
        let cases = [
            ("https://example.com/mcp", "https://example.com/mcp"),
            ("https://a:b@example.com", "https://••••@example.com"),
            (
                "postgres://u:p@db:5432/app?sslmode=x",
                "postgres://••••@db:5432/app?sslmode=••••",
            ),
            (
                "https://example.com/mcp?key=x1&y",
                "https://example.com/mcp?key=••••&••••",
            ),
            (
                "https://x/s/NTk4M2FiMTIzNDU2Nzg5/mcp",
                "https://x/s/••••/mcp",
            ),
            ("not an address", "not an address"),
        ];
        for (address, expected) in cases {
            assert_eq!(url(address), expected);
        }
    }
}
