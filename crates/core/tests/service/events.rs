//! The events of a running call: progress, log messages, and pieces of the answer.

use std::sync::Arc;

use plexus_mcp_core::{
    Builder, Call, Context, Event, EventSender, LogLevel, NoArguments, Object, Peer, Principal,
    Progress, Service, Tool, ToolError, ToolResult,
};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use serde::{Serialize, Serializer};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Caller, builder, text, texts, value};

fn progressing() -> Builder {
    builder().tool(Tool::new("tool"), async |_: NoArguments, ctx: Context| {
        ctx.progress(1.0, Some(2.0), "half").await;
        ctx.progress(2.0, None, None).await;
    })
}

#[tokio::test]
async fn progress_is_reported_to_callers_that_request_it() {
    let mut heard = Vec::new();
    let caller = Caller::of(progressing()).wanting_progress();
    let outcome = caller.hear_tool("tool", |event| match event {
        Event::Progress(progress) => heard.push(progress),
        other => panic!("{other:?}"),
    });
    assert!(outcome.await.is_ok());
    let report = |progress, total, message: Option<&str>| Progress {
        progress,
        total,
        message: message.map(str::to_owned),
    };
    let expected = [
        report(1.0, Some(2.0), Some("half")),
        report(2.0, None, None),
    ];
    assert_eq!(heard, expected);
}

/// PROG-04: a caller that does not ask for progress receives none.
#[tokio::test]
async fn progress_is_not_reported_without_a_request() {
    let outcome = Caller::of(progressing()).call_tool("tool", json!({})).await;
    assert!(outcome.is_ok());
}

fn logging() -> Builder {
    builder().tool(Tool::new("tool"), async |_: NoArguments, ctx: Context| {
        for level in LogLevel::ALL {
            ctx.log_as("part", level, json!({ "level": level })).await;
        }
        ctx.log(LogLevel::Emergency, "the end").await;
    })
}

/// LOG-03: a caller gets messages of its level and above.
#[tokio::test]
async fn messages_are_logged_from_the_wanted_level_on() {
    for level in LogLevel::ALL {
        let mut heard = Vec::new();
        let caller = Caller::of(logging()).wanting_logs(level);
        let outcome = caller.hear_tool("tool", |event| match event {
            Event::Log(log) => heard.push((log.level, log.logger, value(&log.data))),
            other => panic!("{other:?}"),
        });
        assert!(outcome.await.is_ok());
        let wanted = LogLevel::ALL.into_iter().filter(|other| *other >= level);
        let part = || Some("part".to_owned());
        let mut expected: Vec<_> = wanted
            .map(|level| (level, part(), json!({ "level": level })))
            .collect();
        expected.push((LogLevel::Emergency, None, json!("the end")));
        assert_eq!(heard, expected);
    }
}

/// Data of a log message is not serialised if the caller does not want it.
#[tokio::test]
async fn unwanted_messages_cost_nothing() {
    struct Unwritable;
    impl Serialize for Unwritable {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("the caller does not want this")
        }
    }
    let builder = builder().tool(Tool::new("tool"), async |_: NoArguments, ctx: Context| {
        ctx.log(LogLevel::Debug, Unwritable).await;
    });
    let indifferent = Caller::of(builder.clone());
    assert!(indifferent.call_tool("tool", json!({})).await.is_ok());
    let demanding = Caller::of(builder).wanting_logs(LogLevel::Info);
    assert!(demanding.call_tool("tool", json!({})).await.is_ok());
}

fn streaming() -> Builder {
    builder()
        .tool(Tool::new("only"), async |_: NoArguments, ctx: Context| {
            ctx.stream("Hello, ").await;
            ctx.stream("world").await;
        })
        .tool(Tool::new("also"), async |_: NoArguments, ctx: Context| {
            ctx.stream("Hello").await;
            "and more"
        })
        .tool(
            Tool::new("failing"),
            async |_: NoArguments, ctx: Context| -> ToolResult {
                ctx.stream("Hello").await;
                Err(ToolError::failed("no more"))
            },
        )
}

/// S003-42, C16: the streamed text, joined, is the first block of the result, also of one that
/// failed, and whether or not the caller received the streamed pieces.
#[tokio::test]
async fn streamed_text_is_the_first_block_of_the_result() {
    let mut failed = texts(&["Hello", "no more"]);
    failed["isError"] = true.into();
    for (tool, pieces, expected) in [
        ("only", &["Hello, ", "world"][..], text("Hello, world")),
        ("also", &["Hello"], texts(&["Hello", "and more"])),
        ("failing", &["Hello"], failed),
    ] {
        let mut heard = Vec::new();
        let caller = Caller::of(streaming()).wanting_progress();
        let outcome = caller.hear_tool(tool, |event| match event {
            Event::Content(piece) => heard.push(piece),
            other => panic!("{other:?}"),
        });
        assert_eq!(outcome.await, Ok(expected.clone()));
        assert_eq!(heard, pieces);

        let patient = Caller::of(streaming());
        assert_eq!(patient.call_tool(tool, json!({})).await, Ok(expected));
    }
}

/// C16, C17, S003-22, S003-42: first the streamed text, then lines about tools, then errors from
/// which the call recovered, then the returned content. A recovered error is no failure. The result
/// is the same whether or not the caller receives events.
#[tokio::test]
async fn the_result_is_put_together_by_one_rule() {
    let service = || {
        builder().tool(
            Tool::new("tool"),
            async |_: NoArguments, ctx: Context| -> ToolResult<&str> {
                ctx.recovered("the first try failed").await;
                ctx.tool_used("search", crate::support::raw(&json!({"q": "x"})))
                    .await;
                ctx.stream("Hello, ").await;
                ctx.stderr("said, not kept").await;
                ctx.tool_used("read", crate::support::raw(&json!([1])))
                    .await;
                ctx.stream("world").await;
                Ok("returned")
            },
        )
    };
    let expected = texts(&[
        "Hello, world",
        "[Tool: search] {\"q\":\"x\"}\n[Tool: read] [1]",
        "the first try failed",
        "returned",
    ]);
    let buffered = Caller::of(service()).call_tool("tool", json!({})).await;
    assert_eq!(buffered, Ok(expected.clone()));

    let mut heard = Vec::new();
    let listening = Caller::of(service()).wanting_progress();
    let streamed = listening.hear_tool("tool", |event| {
        heard.push(match event {
            Event::Content(text) => format!("content {text}"),
            Event::Stderr(text) => format!("stderr {text}"),
            Event::ToolUse(tool) => format!("tool {} {}", tool.name, tool.input.as_str()),
            Event::Recovered(reason) => format!("recovered {reason}"),
            other => panic!("{other:?}"),
        });
    });
    assert_eq!(streamed.await, Ok(expected));
    let told = [
        "recovered the first try failed",
        "tool search {\"q\":\"x\"}",
        "content Hello, ",
        "stderr said, not kept",
        "tool read [1]",
        "content world",
    ];
    assert_eq!(heard, told);
}

/// C16, S003-22: a result with only structured content gets it as text, pretty-printed.
#[tokio::test]
async fn data_alone_is_shown() {
    let builder = builder().tool(Tool::new("tool"), async |_: NoArguments, _: Context| {
        let mut result = plexus_mcp_core::CallToolResult::new([]);
        result.structured_content = Some(crate::support::raw(&json!({"exit_code": 0})));
        result
    });
    let result = Caller::of(builder)
        .call_tool("tool", json!({}))
        .await
        .unwrap();
    assert_eq!(result["content"][0]["text"], "{\n  \"exit_code\": 0\n}");
}

fn call(events: EventSender, cancel: CancellationToken) -> Call {
    let params = crate::support::raw(&json!({ "name": "tool" }));
    Call::new(
        "tools/call",
        Object::parse(&params).unwrap(),
        events,
        cancel,
    )
}

fn sender() -> (EventSender, plexus_mcp_core::EventReceiver) {
    let revision = Revision::V2026_07_28;
    let none = ClientCapabilities::none();
    let peer = Peer::new(revision, none, None, Principal::anonymous());
    EventSender::channel(Arc::new(peer), true, None)
}

/// A call whose events are no longer received still completes.
#[tokio::test]
async fn a_call_completes_after_its_event_receiver_is_dropped() {
    let service = progressing().build().unwrap();
    let (events, receiver) = sender();
    drop(receiver);
    let outcome = service.call(call(events, CancellationToken::new())).await;
    assert!(outcome.is_ok());
}

/// However a call ends, tasks that its handler started see it as cancelled.
#[tokio::test]
async fn the_end_of_a_call_reaches_what_it_started() {
    let (contexts, mut started) = tokio::sync::mpsc::channel(1);
    let service = builder()
        .tool(Tool::new("tool"), move |_: NoArguments, ctx: Context| {
            let contexts = contexts.clone();
            async move {
                let _receiver_is_there = contexts.send(ctx.clone()).await;
                ctx.cancelled().await;
            }
        })
        .build()
        .unwrap();

    // Its future is dropped.
    let (events, _receiver) = sender();
    let theirs = CancellationToken::new();
    let mut running = service.call(call(events, theirs.clone()));
    let context = tokio::select! {
        _ = &mut running => panic!("it waits to be cancelled"),
        context = started.recv() => context.unwrap(),
    };
    assert!(!context.is_cancelled());
    drop(running);
    assert!(context.is_cancelled() && context.cancellation().is_cancelled());
    assert!(!theirs.is_cancelled(), "the caller's token is its own");

    // Its caller cancels it.
    let (events, _receiver) = sender();
    let mut running = service.call(call(events, theirs.clone()));
    tokio::select! {
        _ = &mut running => panic!("it waits to be cancelled"),
        context = started.recv() => assert!(!context.unwrap().is_cancelled()),
    }
    theirs.cancel();
    assert!(running.await.is_ok());
}
