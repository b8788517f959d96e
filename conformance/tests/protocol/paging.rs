//! Lists that do not fit on one page (PAGE-02, PAGE-05, CACHE26-03).

use plexus_mcp::Revision;
use plexus_server::http::HttpOptions;
use plexus_testkit::Client;
use serde_json::{Value, json};

use crate::support::in_process;

/// S003-14, S003-53, TRAP-11.
#[tokio::test]
async fn long_lists_come_page_by_page() {
    let server = in_process(HttpOptions::default()).await;
    for revision in Revision::ALL {
        let mut client = Client::http(&server.url, revision, json!({}));
        client.open().await;
        let mut cursor = None;
        let mut names = Vec::new();
        let mut sizes = Vec::new();
        loop {
            let params = cursor.map_or(json!({}), |cursor: Value| json!({"cursor": cursor}));
            let page = client.result("tools/list", params).await;
            let tools = page["tools"].as_array().unwrap();
            sizes.push(tools.len());
            names.extend(
                tools
                    .iter()
                    .map(|tool| tool["name"].as_str().unwrap().to_owned()),
            );
            cursor = page.get("nextCursor").cloned();
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(sizes, [50, 50, 20], "{revision}");
        let expected: Vec<_> = (0..120).map(|number| format!("tool_{number:03}")).collect();
        assert_eq!(names, expected, "{revision}");
    }
}

#[tokio::test]
async fn a_cursor_is_good_for_its_own_list_only() {
    let server = in_process(HttpOptions::default()).await;
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
