use super::*;

fn document(id: &str) -> Document {
    Document {
        id: id.to_owned(),
        namespace: "default".to_owned(),
        tags: Vec::new(),
        modality: Modality::Text,
        updated_at: 0,
        importance: 0.5,
    }
}

fn index(texts: &[(&str, &str)]) -> Index {
    let mut index = Index::new(2);
    for (id, text) in texts {
        index.put(document(id), text, None);
    }
    index
}

fn ranked(index: &Index, words: &[&str], limit: usize) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let ranking = index.by_words(&words, &index.eligible(&Filter::default()), limit);
    let ids = ranking
        .iter()
        .map(|&(slot, _)| index.document(slot).unwrap().id.clone());
    ids.collect()
}

#[test]
fn rare_words_frequent_mentions_and_short_texts_count_more() {
    let index = index(&[
        (
            "long",
            "token storage, and then a great many other words about other matters",
        ),
        ("twice", "token storage, token again"),
        ("short", "token storage"),
        ("rare", "rotation storage"),
        ("none", "weather report"),
    ]);
    assert_eq!(ranked(&index, &["token"], 9), ["twice", "short", "long"]);
    assert_eq!(ranked(&index, &["rotation", "storage"], 1), ["rare"]);
    assert_eq!(ranked(&index, &["storage", "unheard"], 9).len(), 4);
    assert!(ranked(&index, &[], 9).is_empty());
}

/// The same input gives the same output, in whichever order nodes were added.
#[test]
fn ties_are_broken_by_id() {
    let ids: Vec<String> = (0..1_000).map(|n| format!("{n:04}")).collect();
    let mut index = Index::new(2);
    for id in ids.iter().rev() {
        index.put(document(id), "token", None);
    }
    index.put(document("0500"), "token", None);
    assert_eq!(ranked(&index, &["token"], 3), ["0000", "0001", "0002"]);
    assert_eq!(ranked(&index, &["token"], 2_000), ids);
}

#[test]
fn what_is_replaced_or_removed_is_not_found_any_more() {
    let mut index = index(&[("a", "token"), ("b", "token rotation")]);
    index.put(document("a"), "weather", None);
    assert_eq!(ranked(&index, &["token"], 9), ["b"]);
    assert_eq!(ranked(&index, &["weather"], 9), ["a"]);
    assert_eq!((index.len(), index.frequency("token")), (2, 1));
    index.remove("b");
    index.remove("b");
    index.remove("unknown");
    assert!(ranked(&index, &["token"], 9).is_empty());
    assert_eq!((index.len(), index.frequency("token")), (1, 0));
    assert_eq!(index.slot("b"), None);
}

#[test]
fn places_of_the_dead_are_waste() {
    let mut index = index(&[]);
    for _ in 0..1_002 {
        index.put(document("a"), "token", None);
    }
    assert!(!index.is_wasteful());
    index.put(document("a"), "token", None);
    assert!(index.is_wasteful());
}

#[test]
fn filters_take_what_fits_all_of_them() {
    let mut index = Index::new(2);
    let code = Document {
        namespace: "project".to_owned(),
        tags: vec!["auth".to_owned(), "draft".to_owned()],
        modality: Modality::Code,
        updated_at: 1_000,
        ..document("code")
    };
    index.put(code, "token", None);
    index.put(document("text"), "token", None);
    let eligible = |filter: Filter| index.eligible(&filter);
    let strings = |tags: &[&str]| tags.iter().map(|&tag| tag.to_owned()).collect();

    assert_eq!(eligible(Filter::default()), [true, true]);
    let project = Filter {
        namespace: Some("project".to_owned()),
        tags: strings(&["draft", "auth"]),
        modality: Some(Modality::Code),
        updated_since: Some(1_000),
    };
    assert_eq!(eligible(project.clone()), [true, false]);
    let too_many_tags = Filter {
        tags: strings(&["auth", "final"]),
        ..project.clone()
    };
    assert_eq!(eligible(too_many_tags), [false, false]);
    let later = Filter {
        updated_since: Some(1_001),
        ..Filter::default()
    };
    assert_eq!(eligible(later), [false, false]);
}

#[test]
fn vectors_are_ranked_from_the_threshold_on() {
    let mut index = Index::new(2);
    for (id, vector) in [
        ("east", [1.0, 0.0]),
        ("north", [0.0, 1.0]),
        ("between", [1.0, 1.0]),
    ] {
        index.put(document(id), "", Some(&Vector::of(&vector)));
    }
    let live = index.eligible(&Filter::default());
    let ranking = index.by_vector(&Vector::of(&[1.0, 0.0]), 0.5, &live, 9);
    let slots: Vec<Slot> = ranking.iter().map(|&(slot, _)| slot).collect();
    assert_eq!(slots, [0, 2]);
    let ranking = index.by_vector(&Vector::of(&[1.0, 0.0]), 0.5, &[false, true, true], 9);
    assert_eq!(ranking.len(), 1);
}

#[test]
fn shared_words_are_a_part_of_all_words() {
    let index = index(&[
        ("a", "token rotation token"),
        ("b", "token storage"),
        ("c", ""),
    ]);
    assert!((index.shared_words(0, 1) - 1.0 / 3.0).abs() < 1e-6);
    assert!((index.shared_words(0, 0) - 1.0).abs() < 1e-6);
    assert!(index.shared_words(2, 2).abs() < f32::EPSILON);
    assert!(index.shared_words(0, 9).abs() < f32::EPSILON);
}
