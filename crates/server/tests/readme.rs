//! The Rust code in the README is part of an example that compiles.

const README: &str = include_str!("../../../README.md");
const EXAMPLE: &str = include_str!("../examples/greeter.rs");

/// S000-48.
#[test]
fn the_readme_shows_the_example() {
    let (_, code) = README.split_once("```rust\n").unwrap();
    let (code, rest) = code.split_once("```\n").unwrap();
    assert!(EXAMPLE.contains(code), "examples/greeter.rs has no\n{code}");
    assert!(!rest.contains("```rust"), "more code that is not compiled");
}
