use std::fs;

use tempfile::TempDir;

use super::*;

const TEXT: &str = r#"{
    "$schema": "x", "mcpServers": {
        "old": {"command": "a", "unknown": [1.50, {"b": null}]}
    },
    "permissions": {"allow": []}
}"#;

fn written(text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(".mcp.json");
    fs::write(&file, text).unwrap();
    (directory, file)
}

fn definition(text: &'static str) -> Raw {
    Raw::parse(text.into(), &json::LIMITS).unwrap()
}

/// C25, S000-29, S000-30: everything else keeps its order and its spelling.
#[test]
fn adding_keeps_everything_else() {
    let (_directory, file) = written(TEXT);
    let change = add(&file, "new", &definition(r#"{"url":"http://x/mcp"}"#)).unwrap();
    let expected = r#"{
  "$schema": "x",
  "mcpServers": {
    "old": {
      "command": "a",
      "unknown": [
        1.50,
        {
          "b": null
        }
      ]
    },
    "new": {
      "url": "http://x/mcp"
    }
  },
  "permissions": {
    "allow": []
  }
}
"#;
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    assert_eq!(change.after, expected);
    assert_eq!(change.before.as_deref(), Some(TEXT));
}

/// S000-32
#[test]
fn removing_undoes_adding() {
    let (_directory, file) = written(TEXT);
    add(&file, "new", &Raw::empty_object()).unwrap();
    let change = remove(&file, "new").unwrap();
    assert_eq!(json_of(&change.after), json_of(TEXT));
    let error = remove(&file, "new").unwrap_err();
    assert!(
        error.to_string().ends_with(r#"there is no server "new""#),
        "{error}"
    );
}

fn json_of(text: &str) -> String {
    json::compact(&Raw::parse(text.to_owned().into(), &json::LIMITS).unwrap())
}

#[test]
fn undoing_is_exact_and_loses_nothing() {
    let (directory, file) = written(TEXT);
    let change = add(&file, "new", &Raw::empty_object()).unwrap();
    undo(&change).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), TEXT);
    let error = undo(&change).unwrap_err();
    assert!(matches!(error, EditError::Changed { .. }), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), TEXT);

    // Including the byte order mark of some Windows editors.
    let marked = format!("\u{feff}{}", TEXT.replace('\n', "\r\n"));
    fs::write(&file, &marked).unwrap();
    undo(&add(&file, "new", &Raw::empty_object()).unwrap()).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), marked);

    let fresh = directory.path().join("fresh.json");
    let change = add(&fresh, "new", &Raw::empty_object()).unwrap();
    undo(&change).unwrap();
    assert!(!fresh.exists());
}

#[test]
fn a_missing_file_is_made_with_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(".claude/settings.local.json");
    let change = add(&file, "a\"b", &Raw::empty_object()).unwrap();
    assert_eq!(change.before, None);
    let expected = "{\n  \"mcpServers\": {\n    \"a\\\"b\": {}\n  }\n}\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
}

#[test]
fn a_name_is_not_added_twice() {
    let (_directory, file) = written(TEXT);
    let error = add(&file, "OLD", &Raw::empty_object()).unwrap_err();
    assert!(matches!(error, EditError::Taken { name, .. } if name == "old"));
    assert_eq!(fs::read_to_string(&file).unwrap(), TEXT);
}

#[test]
fn invalid_files_are_not_overwritten() {
    for text in [
        "{",
        "[]",
        r#"{"mcpServers":[]}"#,
        r#"{"a":1,"a":2}"#,
        "// x\n{}",
    ] {
        let (_directory, file) = written(text);
        let error = add(&file, "new", &Raw::empty_object()).unwrap_err();
        assert!(matches!(error, EditError::Unusable(_)), "{text}: {error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    let (_directory, file) = written("");
    let error = add(&file, "new", &Raw::null()).unwrap_err();
    assert!(matches!(error, EditError::NotAnObject { .. }));
}

#[cfg(unix)]
#[test]
fn permissions_and_links_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let (directory, file) = written("\u{feff}{}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let link = directory.path().join("link.json");
    symlink(&file, &link).unwrap();
    add(&link, "new", &Raw::empty_object()).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o640);

    let fresh = directory.path().join("fresh.json");
    add(&fresh, "new", &Raw::empty_object()).unwrap();
    assert_eq!(mode(&fresh), 0o600);
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let (_directory, file) = written("{}");
    std::thread::scope(|scope| {
        for index in 0..8 {
            let file = &file;
            scope.spawn(move || add(file, &format!("s{index}"), &Raw::empty_object()).unwrap());
        }
    });
    assert_eq!(Document::open(&file).unwrap().servers().count(), 8);
}
