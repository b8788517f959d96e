//! Lists, with all their pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plexus_mcp_client::ListProblem;
use plexus_mcp_core::Section;
use plexus_testkit::server::{HttpServer, Offer, Reply, Script, StdioServer, Step, tool};
use serde_json::{Value, json};

use crate::support::{
    LEGACY, STATELESS, call_tool, catalogue, connected, http, names, stdio, tools,
};

/// S004-12, S004-56, S004-K049, S004-K050: only declared lists are requested.
#[tokio::test]
async fn only_declared_lists_are_asked_for() {
    let lists = [
        ("tools", &["tools/list"][..]),
        ("prompts", &["prompts/list"]),
        ("resources", &["resources/list", "resources/templates/list"]),
        ("logging", &[]),
    ];
    for revision in [LEGACY, STATELESS] {
        for (capability, expected) in lists {
            let offer = Offer::new(revision).declaring(capability, json!({}));
            let server = StdioServer::new(&offer).await;
            let _upstream = connected(stdio(&server)).await;
            let methods = server.process().await.methods().await;
            let asked: Vec<_> = methods.iter().filter(|m| m.ends_with("/list")).collect();
            assert_eq!(asked, expected, "{capability}");
        }
    }
}

/// S004-K021, S004-K048.
#[tokio::test]
async fn everything_that_is_offered_is_in_the_catalogue() {
    for revision in [LEGACY, STATELESS] {
        let mut offer = Offer::tools(revision, [tool("b"), tool("a")])
            .declaring("resources", json!({}))
            .declaring("prompts", json!({}));
        offer.resources = vec![json!({"uri": "a://b", "name": "r"})];
        offer.templates = vec![json!({"uriTemplate": "a://{x}", "name": "t"})];
        offer.prompts = vec![json!({"name": "p"})];
        offer.instructions = Some("Be kind.".to_owned());
        let server = StdioServer::new(&offer).await;
        let upstream = connected(stdio(&server)).await;
        let catalogue = catalogue(&upstream);
        assert_eq!(names(&catalogue, Section::Tools), ["b", "a"]);
        assert_eq!(names(&catalogue, Section::Resources), ["a://b"]);
        assert_eq!(names(&catalogue, Section::Templates), ["a://{x}"]);
        assert_eq!(names(&catalogue, Section::Prompts), ["p"]);
        assert_eq!(catalogue.instructions.as_deref(), Some("Be kind."));
        let facts = upstream.report().unwrap().facts;
        assert_eq!(facts.identity.name, "scripted");
        assert_eq!(facts.instructions.as_deref(), Some("Be kind."));
    }
}

fn page(names: &[&str], next: Option<&str>) -> Step {
    let tools: Vec<_> = names.iter().map(|name| tool(name)).collect();
    let mut result = json!({"tools": tools});
    if let Some(next) = next {
        result["nextCursor"] = json!(next);
    }
    Step::Result(result)
}

/// S004-D06, TRAP-10: all pages are fetched. PAGE-04: an empty cursor is valid.
#[tokio::test]
async fn all_pages_are_followed() {
    for revision in [LEGACY, STATELESS] {
        let script = Script::from(&Offer::tools(revision, []))
            .on("tools/list", [page(&["a"], Some("two"))])
            .then("tools/list", [page(&["b", "c"], Some(""))])
            .then("tools/list", [page(&["d"], None)]);
        let server = StdioServer::new(script).await;
        let upstream = connected(stdio(&server)).await;
        assert_eq!(tools(&upstream), ["a", "b", "c", "d"]);
        let process = server.process().await;
        let mut cursors = Vec::new();
        for _ in 0..3 {
            let request = process.received("tools/list").await;
            cursors.push(request["params"]["cursor"].clone());
        }
        assert_eq!(cursors, [Value::Null, json!("two"), json!("")]);
        assert!(upstream.report().unwrap().list_problems.is_empty());
    }
}

/// TRAP-12: an entry that is on two pages is listed once.
#[tokio::test]
async fn an_entry_on_two_pages_is_listed_once() {
    let script = Script::from(&Offer::tools(LEGACY, []))
        .on("tools/list", [page(&["a", "b"], Some("two"))])
        .then("tools/list", [page(&["b", "c"], None)]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    assert_eq!(tools(&upstream), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_cursor_that_leads_back_ends_the_list() {
    let script = Script::from(&Offer::tools(LEGACY, []))
        .on("tools/list", [page(&["a"], Some("x"))])
        .then("tools/list", [page(&["b"], Some("y"))])
        .then("tools/list", [page(&["c"], Some("x"))]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    assert_eq!(tools(&upstream), ["a", "b", "c"]);
    let list_problems = upstream.report().unwrap().list_problems;
    assert_eq!(list_problems, [ListProblem::CursorLoop(Section::Tools)]);
}

/// A server whose list never ends, with `per_page` tools on each page.
async fn endless(per_page: usize) -> HttpServer {
    let offer = Offer::tools(LEGACY, []);
    let pages = AtomicUsize::new(0);
    HttpServer::start(move |request| match request.mcp() {
        "tools/list" => {
            let number = pages.fetch_add(1, Ordering::Relaxed);
            let tools: Vec<_> = (0..per_page)
                .map(|tool_number| tool(&format!("t{number}_{tool_number}")))
                .collect();
            let next = format!("after {number}");
            Reply::json(&request.result(&json!({"tools": tools, "nextCursor": next})))
        }
        "tools/call" => Reply::json(&request.result(&json!({"content": []}))),
        _ => request.reply_from(&offer),
    })
    .await
}

#[tokio::test]
async fn pages_without_end_are_followed_up_to_a_limit() {
    for per_page in [0, 7] {
        let server = endless(per_page).await;
        let mut definition = http(&server);
        definition.max_listed = 50;
        let upstream = connected(definition).await;
        let list_problems = upstream.report().unwrap().list_problems;
        assert_eq!(list_problems, [ListProblem::TooLong(Section::Tools)]);
        assert_eq!(tools(&upstream).len(), if per_page == 0 { 0 } else { 50 });
        call_tool(&upstream, "t0_0").await;
    }
}

/// Pages are limited in bytes, cursors included, so that few large pages cannot fill the memory.
#[tokio::test]
async fn the_pages_of_a_list_are_limited_in_bytes() {
    let offer = Offer::tools(LEGACY, []);
    let pages = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&pages);
    let server = HttpServer::start(move |request| match request.mcp() {
        "tools/list" => {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            let next = format!("{number} {}", "x".repeat(10_000));
            let tools = [tool(&format!("t{number}"))];
            Reply::json(&request.result(&json!({"tools": tools, "nextCursor": next})))
        }
        _ => request.reply_from(&offer),
    })
    .await;
    let mut definition = http(&server);
    definition.max_listed_bytes = 50_000;
    let upstream = connected(definition).await;
    let list_problems = upstream.report().unwrap().list_problems;
    assert_eq!(list_problems, [ListProblem::TooLong(Section::Tools)]);
    assert_eq!(tools(&upstream), ["t0", "t1", "t2", "t3"]);
    assert_eq!(pages.load(Ordering::Relaxed), 5);
}

/// A page without a cursor is not exempt from the limit.
#[tokio::test]
async fn a_single_page_is_followed_up_to_the_same_limit() {
    let names: Vec<String> = (0..60).map(|number| format!("tool_{number}")).collect();
    let offer = Offer::tools(LEGACY, names.iter().map(|name| tool(name)));
    for (limit, is_too_long) in [(50, true), (60, false)] {
        let offer = offer.clone();
        let server = HttpServer::start(move |request| request.reply_from(&offer)).await;
        let mut definition = http(&server);
        definition.max_listed = limit;
        let upstream = connected(definition).await;
        assert_eq!(tools(&upstream), names[..limit]);
        let list_problems = upstream.report().unwrap().list_problems;
        assert_eq!(!list_problems.is_empty(), is_too_long, "{list_problems:?}");
    }
}

/// However a server cuts its list into pages.
#[tokio::test]
async fn fifty_thousand_tools_are_listed() {
    const TOOLS: usize = 50_000;
    for per_page in [TOOLS, 1_000, 25] {
        let offer = Offer::tools(LEGACY, []);
        let server = HttpServer::start(move |request| match request.mcp() {
            "tools/list" => {
                let cursor = request.body["params"]["cursor"].as_str();
                let first: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
                let after = (first + per_page).min(TOOLS);
                let page: Vec<_> = (first..after)
                    .map(|number| tool(&format!("tool_{number}")))
                    .collect();
                let mut result = json!({"tools": page});
                if after < TOOLS {
                    result["nextCursor"] = json!(after.to_string());
                }
                Reply::json(&request.result(&result))
            }
            _ => request.reply_from(&offer),
        })
        .await;
        let upstream = connected(http(&server)).await;
        let names = tools(&upstream);
        assert_eq!(names.len(), TOOLS, "{per_page} on a page");
        assert_eq!(names.last().unwrap(), "tool_49999");
        assert!(upstream.report().unwrap().list_problems.is_empty());
    }
}

/// C37, S001-63: the server stays connected without tools, and the report has the reason.
#[tokio::test]
async fn a_list_that_fails_is_empty_and_says_why() {
    let failure = json!({"code": -32603, "message": "the database is down"});
    for revision in [LEGACY, STATELESS] {
        let mut offer = Offer::tools(revision, []).declaring("prompts", json!({}));
        offer.prompts = vec![json!({"name": "p"})];
        let script = Script::from(&offer).on("tools/list", [Step::Error(failure.clone())]);
        let server = StdioServer::new(script).await;
        let upstream = connected(stdio(&server)).await;
        assert!(tools(&upstream).is_empty());
        assert_eq!(names(&catalogue(&upstream), Section::Prompts), ["p"]);
        let list_problems = upstream.report().unwrap().list_problems;
        let [ListProblem::Failed { section, reason }] = &list_problems[..] else {
            panic!("{list_problems:?}");
        };
        assert_eq!(*section, Section::Tools);
        assert!(reason.contains("the database is down"), "{reason}");
    }
}

/// A malformed list is reported, too.
#[tokio::test]
async fn a_list_that_is_none_says_so() {
    for answer in [
        json!({"tools": "none"}),
        json!({"tools": {"a": {}}}),
        json!({}),
        json!([]),
        json!(null),
        json!({"tools": [], "nextCursor": 7}),
    ] {
        let script = Script::from(&Offer::tools(LEGACY, []));
        let script = script.on("tools/list", [Step::Result(answer.clone())]);
        let server = StdioServer::new(script).await;
        let upstream = connected(stdio(&server)).await;
        assert!(tools(&upstream).is_empty(), "{answer}");
        let list_problems = upstream.report().unwrap().list_problems;
        assert!(
            matches!(
                &list_problems[..],
                [ListProblem::Failed { .. } | ListProblem::BadCursor(_)]
            ),
            "{answer}: {list_problems:?}"
        );
    }
}
