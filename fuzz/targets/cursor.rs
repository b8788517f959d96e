//! A cursor of a client never panics; the cursors of a list lead through all of it, once.

#![no_main]

use std::num::NonZeroUsize;

use libfuzzer_sys::fuzz_target;
use plexus_mcp_protocol::cursor::page;

fuzz_target!(|input: (Vec<String>, u8, String)| {
    let (mut items, size, cursor) = input;
    items.sort();
    items.dedup();
    let size = NonZeroUsize::new(usize::from(size)).unwrap_or(NonZeroUsize::MIN);
    let page_at = |cursor: Option<&str>| page(&items, String::as_str, "tools", cursor, size);

    if let Ok(page) = page_at(Some(&cursor)) {
        assert!(page.items.len() <= size.get());
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = page_at(cursor.as_deref()).unwrap();
        seen.extend_from_slice(page.items);
        let Some(next) = page.next_cursor else {
            break;
        };
        assert!(page_at(Some(&next)).is_ok());
        assert!(page_of_another_list(&items, &next, size));
        cursor = Some(next);
    }
    assert_eq!(seen, items);
});

/// Whether the cursor is refused for another list.
fn page_of_another_list(items: &[String], cursor: &str, size: NonZeroUsize) -> bool {
    page(items, String::as_str, "prompts", Some(cursor), size).is_err()
}
