//! What was meant, when a name is wrong.

/// How alike names must be to be mistaken for each other.
const ALIKE: f64 = 0.7;
const MOST: usize = 3;
/// What is shorter is a part of too many names.
const PART: usize = 3;

/// The names that are most like `wrong`, the best first.
pub(crate) fn alike<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wrong = wrong.to_lowercase();
    let mut scored: Vec<_> = names
        .map(|name| (likeness(&wrong, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first.cmp(second)));
    scored
        .into_iter()
        .map(|(_, name)| name)
        .take(MOST)
        .collect()
}

/// A question whether one of these was meant, to follow what is wrong.
pub(crate) fn did_you_mean(alike: &[&str]) -> String {
    match alike {
        [] => String::new(),
        [only] => format!("; did you mean {only}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

/// People mistype a name, or leave out the server that it begins with.
fn likeness(wrong: &str, name: &str) -> f64 {
    let own = name.split("__").last().unwrap_or(name);
    let whole = strsim::normalized_damerau_levenshtein(wrong, name);
    let own = strsim::normalized_damerau_levenshtein(wrong, own);
    let part = if wrong.len() >= PART && name.contains(wrong) {
        ALIKE
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
