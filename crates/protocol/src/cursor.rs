//! Pagination: opaque cursors of our own lists.
//!
//! A cursor holds the list it belongs to and the items on both sides of the cut, not a position: it
//! stays valid while other items are added or removed (PAGE-05), in any process that serves the list.

use std::num::NonZeroUsize;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use serde::{Deserialize, Serialize};

/// The default page size. It is large because most clients read only the first page, so a list
/// should fit on it.
pub const DEFAULT_PAGE_SIZE: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<'a, T> {
    /// The items.
    pub items: &'a [T],
    /// The cursor of the next page; `None` on the last page.
    pub next_cursor: Option<String>,
}

/// A cursor that was not issued here, belongs to another list, or whose position no longer exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor")]
pub struct InvalidCursor;

/// The page of `items` that `cursor` names, or the first one.
///
/// `list` names this list; cursors of other lists are refused. `key` gives the key of an item. A
/// cursor is valid for pages of any `size`. The empty string is not a valid cursor, and not the
/// start of the list either (PAGE-04).
pub fn page<'a, T>(
    items: &'a [T],
    key: impl Fn(&T) -> &str,
    list: &str,
    cursor: Option<&str>,
    size: NonZeroUsize,
) -> Result<Page<'a, T>, InvalidCursor> {
    let start = match cursor {
        Some(cursor) => Cut::decode(cursor, list)?
            .find(items, &key)
            .ok_or(InvalidCursor)?,
        None => 0,
    };
    let rest = items.get(start..).unwrap_or_default();
    let (items, after) = rest.split_at(size.get().min(rest.len()));
    let next_cursor = match (items.last(), after.first()) {
        (Some(last), Some(next)) => Some(
            Cut {
                list: list.into(),
                last: key(last).into(),
                next: key(next).into(),
            }
            .encode(),
        ),
        _ => None,
    };
    Ok(Page { items, next_cursor })
}

/// A place in a list: between two items.
#[derive(Serialize, Deserialize)]
struct Cut {
    list: Box<str>,
    last: Box<str>,
    next: Box<str>,
}

impl Cut {
    fn encode(&self) -> String {
        let parts = (&self.list, &self.last, &self.next);
        BASE64_URL_SAFE_NO_PAD.encode(crate::messages::to_raw(&parts).as_bytes())
    }

    fn decode(cursor: &str, list: &str) -> Result<Self, InvalidCursor> {
        let json = BASE64_URL_SAFE_NO_PAD
            .decode(cursor)
            .ok()
            .ok_or(InvalidCursor)?;
        let (of, last, next) = serde_json::from_slice(&json).ok().ok_or(InvalidCursor)?;
        let cut = Self {
            list: of,
            last,
            next,
        };
        if *cut.list == *list {
            Ok(cut)
        } else {
            Err(InvalidCursor)
        }
    }

    /// The index of the next page: after the last item shown or, if that was removed, at the item
    /// that followed it.
    fn find<T>(&self, items: &[T], key: impl Fn(&T) -> &str) -> Option<usize> {
        let position = |wanted: &str| items.iter().position(|item| key(item) == wanted);
        position(&self.last)
            .map(|last| last + 1)
            .or_else(|| position(&self.next))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("tool-{number}")).collect()
    }

    fn page_of<'a>(
        items: &'a [String],
        cursor: Option<&str>,
    ) -> Result<Page<'a, String>, InvalidCursor> {
        page(items, String::as_str, "tools", cursor, size(50))
    }

    fn size(items: usize) -> NonZeroUsize {
        NonZeroUsize::new(items).unwrap()
    }

    /// S003-15, in which a page has fifty items: the default is larger, see [`DEFAULT_PAGE_SIZE`].
    #[test]
    fn pages_have_so_many_items_and_the_last_one_no_cursor() {
        let items = names(120);
        let first = page_of(&items, None).unwrap();
        let second = page_of(&items, first.next_cursor.as_deref()).unwrap();
        let third = page_of(&items, second.next_cursor.as_deref()).unwrap();
        assert_eq!(
            [first.items.len(), second.items.len(), third.items.len()],
            [50, 50, 20]
        );
        assert_eq!(third.next_cursor, None);
        assert_eq!([first.items, second.items, third.items].concat(), items);
    }

    #[test]
    fn a_list_that_just_fits_has_one_page() {
        assert_eq!(page_of(&names(50), None).unwrap().next_cursor, None);
        assert_eq!(
            page_of(&[], None).unwrap(),
            Page {
                items: &[],
                next_cursor: None
            }
        );
    }

    /// PAGE-05: stable while other items are added and removed.
    #[test]
    fn a_cursor_survives_changes_of_the_list() {
        let items = names(60);
        let cursor = page_of(&items, None).unwrap().next_cursor;
        let start_of_next = |items: &[String]| {
            page_of(items, cursor.as_deref()).map(|page| page.items.first().cloned())
        };

        let mut without_early = items.clone();
        without_early.drain(..10);
        assert_eq!(
            start_of_next(&without_early),
            Ok(Some("tool-50".to_owned()))
        );

        let mut without_last_shown = items.clone();
        without_last_shown.remove(49);
        assert_eq!(
            start_of_next(&without_last_shown),
            Ok(Some("tool-50".to_owned()))
        );

        let mut without_next = items.clone();
        without_next.remove(50);
        assert_eq!(start_of_next(&without_next), Ok(Some("tool-51".to_owned())));

        let mut grown = items.clone();
        grown.insert(0, "new".to_owned());
        assert_eq!(start_of_next(&grown), Ok(Some("tool-50".to_owned())));

        assert_eq!(
            start_of_next(&names(10)),
            Err(InvalidCursor),
            "both neighbours were removed"
        );
    }

    /// PAGE-05, PAGE-04: an empty cursor is a cursor, and was not issued here.
    #[test]
    fn cursors_that_are_not_of_this_list_are_refused() {
        let items = names(60);
        let of_prompts = page(&items, String::as_str, "prompts", None, size(50))
            .unwrap()
            .next_cursor;
        let of_tools = page_of(&items, None).unwrap().next_cursor.unwrap();
        let cut = of_tools.get(3..).unwrap();
        for cursor in [
            of_prompts.as_deref().unwrap(),
            "",
            "50",
            "bm90LW91cnM",
            "??",
            cut,
        ] {
            assert_eq!(
                page_of(&items, Some(cursor)),
                Err(InvalidCursor),
                "{cursor:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn following_cursors_shows_every_item_once(
            count in 0usize..40,
            sizes in proptest::collection::vec(1usize..9, 1..4),
        ) {
            let items = names(count);
            let (mut shown, mut cursor) = (Vec::new(), None);
            // The size may change from one request to the next.
            for of_page in sizes.into_iter().cycle() {
                let of_page = size(of_page);
                let page = page(&items, String::as_str, "x", cursor.as_deref(), of_page).unwrap();
                shown.extend_from_slice(page.items);
                cursor = page.next_cursor;
                if cursor.is_none() { break }
            }
            prop_assert_eq!(shown, items);
        }

        #[test]
        fn arbitrary_cursors_never_panic(cursor in ".*") {
            prop_assert!(page_of(&names(60), Some(&cursor)).is_err());
        }
    }
}
