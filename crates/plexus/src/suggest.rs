//! Suggestions for misspelled names.

/// The similarity from which on a name is suggested.
const MIN_SIMILARITY: f64 = 0.7;
const MAX_SUGGESTIONS: usize = 3;
/// Parts of names shorter than this are not compared: they occur in too many names.
const MIN_PART_CHARS: usize = 3;

/// The names that are most similar to `wrong`, the best first.
pub(crate) fn alike<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wrong = wrong.to_lowercase();
    let mut scored: Vec<_> = names
        .map(|name| (likeness(&wrong, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
        .collect();
    scored.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first.cmp(second)));
    scored
        .into_iter()
        .map(|(_, name)| name)
        .take(MAX_SUGGESTIONS)
        .collect()
}

/// "Did you mean", to be appended to an error.
pub(crate) fn did_you_mean(alike: &[&str]) -> String {
    match alike {
        [] => String::new(),
        [only] => format!("; did you mean {only}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

/// The similarity. Users mistype a name, or leave out its server prefix.
fn likeness(wrong: &str, name: &str) -> f64 {
    let own = name.split("__").last().unwrap_or(name);
    let whole = strsim::normalized_damerau_levenshtein(wrong, name);
    let own = strsim::normalized_damerau_levenshtein(wrong, own);
    let part = if wrong.len() >= MIN_PART_CHARS && name.contains(wrong) {
        MIN_SIMILARITY
    } else {
        0.0
    };
    whole.max(own).max(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        let names = ["git__status", "git__log", "time__convert"];
        let alike = |wrong| alike(wrong, names.into_iter());
        assert_eq!(alike("git__staus")[0], "git__status");
        assert_eq!(alike("status"), ["git__status"]);
        assert_eq!(alike("Convert"), ["time__convert"]);
        assert!(alike("weather").is_empty());
        assert_eq!(did_you_mean(&["a"]), "; did you mean a?");
        assert_eq!(did_you_mean(&["a", "b"]), "; did you mean a or b?");
        assert_eq!(did_you_mean(&[]), "");
    }
}
