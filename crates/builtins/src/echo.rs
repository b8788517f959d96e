//! The tools `echo.*`, for trying out a client, including streaming.

use plexus_mcp_core::{Builder, Context, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::names::Names;

/// Adds the tools `echo.echo`, `echo.once` and `echo.ping`.
pub fn echo(builder: Builder, names: Names) -> Builder {
    let tool = |method| read_only(names.tool("echo", method));
    builder
        .tool(
            tool("echo")
                .title("Echo")
                .description("Repeats a message, streaming one line for each repetition"),
            async |Echo { message, count }: Echo, ctx: Context| {
                ctx.stream(message.as_str()).await;
                for _ in 1..count {
                    ctx.stream(format!("\n{message}")).await;
                }
            },
        )
        .tool(
            tool("once")
                .title("Echo once")
                .description("Returns a message once"),
            async |Once { message }: Once, _: Context| message,
        )
        .tool(
            tool("ping").title("Ping").description("Returns pong"),
            async |Ping {}, _: Context| "pong",
        )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// The message to return.
    message: String,
    /// Number of repetitions.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 100))]
    count: u32,
}

fn once() -> u32 {
    1
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Once {
    /// The message to return.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ping {}

fn read_only(tool: Tool) -> Tool {
    tool.annotations(ToolAnnotations::new().read_only(true).open_world(false))
}

#[cfg(test)]
mod tests {
    use plexus_mcp_core::{Event, Fault};

    use crate::Names;
    use crate::testing::{Caller, text};

    /// C16: the first block of the result is the streamed pieces, joined.
    #[tokio::test]
    async fn repetitions_are_streamed_and_make_up_the_result() {
        let mut caller = Caller::of(Names::Dotted);
        let arguments = r#"{"message":"hello","count":3}"#;
        let result = caller.call("echo.echo", arguments).await.unwrap();
        assert_eq!(result["content"].as_array().unwrap().len(), 1);
        assert_eq!(text(&result), "hello\nhello\nhello");

        let mut streamed = Vec::new();
        while let Some(Event::Content(piece)) = caller.events.try_recv() {
            streamed.push(piece);
        }
        assert_eq!(streamed, ["hello", "\nhello", "\nhello"]);
    }

    #[tokio::test]
    async fn a_message_is_said_once_unless_more_is_asked_for() {
        let caller = Caller::of(Names::Dotted);
        let arguments = r#"{"message":"Grüße, \"du\"\n"}"#;
        for tool in ["echo.echo", "echo.once"] {
            let result = caller.call(tool, arguments).await.unwrap();
            assert_eq!(text(&result), "Grüße, \"du\"\n", "{tool}");
        }
    }

    #[tokio::test]
    async fn ping_answers_pong() {
        let result = Caller::of(Names::Dotted)
            .call("echo.ping", "{}")
            .await
            .unwrap();
        assert_eq!(text(&result), "pong");
    }

    /// S000-37, C10: arguments that do not match the schema are refused.
    #[tokio::test]
    async fn arguments_are_checked() {
        let caller = Caller::of(Names::Dotted);
        let cases = [
            ("echo.echo", r#"{"message":"a","count":0}"#),
            ("echo.echo", r#"{"message":"a","count":101}"#),
            ("echo.echo", r#"{"message":"a","count":-1}"#),
            ("echo.echo", r#"{"message":"a","count":"2"}"#),
            ("echo.echo", r#"{"message":1}"#),
            ("echo.echo", "{}"),
            ("echo.once", r#"{"message":"a","loud":true}"#),
            ("echo.once", r#"{"message":"\ud800"}"#),
            ("echo.echo", r#"{"message":"\ud800"}"#),
            ("echo.ping", r#"{"message":"a"}"#),
        ];
        for (tool, arguments) in cases {
            let outcome = caller.call(tool, arguments).await;
            assert!(
                matches!(outcome, Err(Fault::InvalidArguments(_))),
                "{tool} {arguments}"
            );
        }
    }
}
