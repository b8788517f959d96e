//! Lists that do not fit on one page (PAGE-02, PAGE-05, CACHE26-03).

use std::num::NonZeroUsize;

use plexus_mcp_protocol::Revision;
use plexus_mcp_server::Options;
use plexus_mcp_server::http::HttpOptions;
use plexus_testkit::Client;
use serde_json::{Value, json};

use crate::support::{InProcess, in_process, in_process_with};

/// A server whose pages have so many entries.
async fn with_pages_of(entries: usize) -> InProcess {
    let mut options = Options::default();
    options.page_size = NonZeroUsize::new(entries).unwrap();
    in_process_with(options, HttpOptions::default()).await
}

/// The names on one page of tools, and the cursor of the next page.
async fn page(client: &mut Client, cursor: Option<Value>) -> (Vec<String>, Option<Value>) {
    let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
    let page = client.result("tools/list", params).await;
    let tools = page["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["name"].as_str().unwrap().to_owned());
    (names.collect(), page.get("nextCursor").cloned())
}

fn all_names() -> Vec<String> {
    (0..120).map(|number| format!("tool_{number:03}")).collect()
}

/// S003-14, S003-53, TRAP-11.
#[tokio::test]
async fn long_lists_come_page_by_page() {
    let server = with_pages_of(50).await;
    for revision in Revision::ALL {
        let mut client = Client::http(&server.url, revision, json!({}));
        client.open().await;
        let mut names = Vec::new();
        let mut sizes = Vec::new();
        let mut cursor = None;
        loop {
            let (shown, next) = page(&mut client, cursor).await;
            sizes.push(shown.len());
            names.extend(shown);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(sizes, [50, 50, 20], "{revision}");
        assert_eq!(names, all_names(), "{revision}");
    }
}

/// The default page size is 1000, since most clients read only the first page. (S003-15 has 50.)
#[tokio::test]
async fn a_list_of_up_to_a_thousand_entries_is_one_page() {
    assert_eq!(Options::default().page_size.get(), 1000);
    let server = in_process(HttpOptions::default()).await;
    let mut client = Client::http(&server.url, Revision::V2025_06_18, json!({}));
    client.open().await;
    assert_eq!(page(&mut client, None).await, (all_names(), None));
}

/// PAGE-05: a cursor stays valid if the server is restarted with another page size.
#[tokio::test]
async fn a_cursor_is_good_for_another_page_size() {
    let revision = Revision::V2026_07_28;
    let small = with_pages_of(7).await;
    let large = with_pages_of(100).await;
    let mut client = Client::http(&small.url, revision, json!({}));
    let (mut names, cursor) = page(&mut client, None).await;
    assert_eq!(names.len(), 7);
    let mut client = Client::http(&large.url, revision, json!({}));
    let (shown, cursor) = page(&mut client, cursor).await;
    assert_eq!(shown.len(), 100);
    names.extend(shown);
    let mut client = Client::http(&small.url, revision, json!({}));
    let mut cursor = cursor;
    while cursor.is_some() {
        let (shown, next) = page(&mut client, cursor).await;
        names.extend(shown);
        cursor = next;
    }
    assert_eq!(names, all_names());
}

#[tokio::test]
async fn a_cursor_is_good_for_its_own_list_only() {
    let server = with_pages_of(50).await;
    let mut client = Client::http(&server.url, Revision::V2026_07_28, json!({}));
    let page = client.result("tools/list", json!({})).await;
    let cursor = page["nextCursor"].as_str().unwrap();
    let mut altered = cursor.to_owned();
    altered.insert(1, 'x');
    for (method, cursor) in [
        ("resources/list", json!(cursor)),
        ("tools/list", json!(altered)),
        ("tools/list", json!("")),
        ("tools/list", json!(5)),
    ] {
        let error = client.error(method, json!({"cursor": cursor})).await;
        assert_eq!(error["code"], -32602, "{method} {cursor}");
    }
}
