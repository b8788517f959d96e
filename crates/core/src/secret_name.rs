//! Names of headers, members, options and variables that hold secrets.

/// A name that contains one of these holds a secret.
const SECRET_PARTS: [&str; 10] = [
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "authorization",
    "credential",
    "cookie",
    "sessionid",
    "bearer",
];
/// A name with a word that ends with one of these holds a secret. Names such as `author` and
/// `keywords` do not.
const SECRET_ENDINGS: [&str; 2] = ["key", "auth"];

/// Whether a value of this name is probably a secret, in any spelling such as `api_key`, `API-Key`
/// or `apiKey`. The protocol's own `progressToken` is none.
///
/// ```
/// use plexus_mcp_core::is_secret_name;
///
/// assert!(is_secret_name("X-Api-Key"));
/// assert!(!is_secret_name("author"));
/// ```
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let joined = words.concat();
    let has_secret_word = || {
        let mut words = words.iter();
        words.any(|word| SECRET_ENDINGS.iter().any(|end| word.ends_with(end)))
    };
    joined != "progresstoken"
        && (SECRET_PARTS.iter().any(|part| joined.contains(part)) || has_secret_word())
}

/// The words of a name in lower case. A word ends before a character that is neither a letter nor a
/// digit, and before a capital that follows a small letter.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || (was_small && c.is_ascii_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && c.is_ascii_alphanumeric()
        {
            word.push(c.to_ascii_lowercase());
        }
        was_small = c.is_ascii_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::is_secret_name;

    #[test]
    fn names_of_secrets_are_recognised_in_any_spelling() {
        let secret = [
            "accessToken",
            "GITHUB_TOKEN",
            "--api-key",
            "API-Key",
            "apikey",
            "X-Key",
            "KEY_ID",
            "openaikey",
            "BASIC_AUTH",
            "proxyAuthorization",
            "Set-Cookie",
            "mcp-session-id",
            "dbPassword",
            "tokens",
        ];
        for name in secret {
            assert!(is_secret_name(name), "{name}");
        }
        let harmless = ["progressToken", "author", "keywords", "name", "", "-v"];
        for name in harmless {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
