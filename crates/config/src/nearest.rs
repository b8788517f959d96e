//! The valid key that an unknown key was probably meant to be.

/// The similarity from which on a key is suggested.
const MIN_SIMILARITY: f64 = 0.7;

/// The valid key that is most similar to `unknown`, if any is similar enough.
pub(crate) fn nearest<'a>(
    unknown: &str,
    valid: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let unknown = unknown.to_lowercase();
    let scored = valid.into_iter().map(|key| {
        let score = strsim::normalized_damerau_levenshtein(&unknown, &key.to_lowercase());
        (score, key)
    });
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= MIN_SIMILARITY).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_recognised() {
        let valid = ["start", "startup_wait", "page_size"];
        for (unknown, expected) in [
            ("strat", Some("start")),
            ("startupWait", Some("startup_wait")),
            ("page-size", Some("page_size")),
            ("colour", None),
        ] {
            assert_eq!(nearest(unknown, valid), expected, "{unknown}");
        }
        assert_eq!(nearest("x", []), None);
    }
}
