//! The requests of a measurement, and what answers them.

use anyhow::Context as _;
use plexus_mcp_protocol::Era;
use serde_json::{Map, Value, json};

use super::check::{Check, Expected};
use super::{MAX_SHORT_BYTES, Request};

/// The sizes of the texts in answers, in bytes. The largest leaves room for the rest of the message,
/// since servers accept 1 MiB by default.
pub(crate) const SIZES: [usize; 3] = [100, 10 * 1024, 1023 * 1024];

/// The tool that every server has. It has the arguments `text` and `times`, reports its progress
/// once if the client asks for it, and returns the text that often.
pub(crate) const TOOL: &str = "repeat";

/// How often the tool repeats its text, so that the request and the answer both have a size.
const TIMES: usize = 2;

/// The requests of a measurement.
#[derive(Debug, Clone)]
pub(crate) enum Job {
    /// Calls of the tool.
    Call(Call),
    /// The pages of a list of tools are requested one after the other. Their lengths are known.
    List { pages: Vec<Page> },
}

/// Calls of the tool `repeat`.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The names that the tool has, which are called in turn.
    pub(crate) tools: Vec<String>,
    /// The length of the text in the answer, in bytes.
    pub(crate) bytes: usize,
    /// How often the text in the request is in the answer.
    pub(crate) times: usize,
    /// Whether the client asks for progress, so that the answer is an event stream.
    pub(crate) with_progress: bool,
}

impl Call {
    /// Calls with answers of this size, in JSON.
    pub(crate) fn new(tool: impl Into<String>, bytes: usize) -> Self {
        Self {
            tools: vec![tool.into()],
            bytes,
            times: TIMES,
            with_progress: false,
        }
    }

    fn argument(&self) -> String {
        text(self.bytes / self.times)
    }

    fn request(&self, era: Era, tool: &str) -> Request {
        let mut params = Map::new();
        if self.with_progress {
            params.insert("_meta".to_owned(), json!({"progressToken": 1}));
        }
        params.insert("name".to_owned(), json!(tool));
        let arguments = json!({"text": self.argument(), "times": self.times});
        params.insert("arguments".to_owned(), arguments);
        Request::new(era, "tools/call", params)
    }
}

impl Job {
    /// One request for each tool or page.
    pub(crate) fn requests(&self, era: Era) -> Vec<Request> {
        match self {
            Self::Call(call) => {
                let tools = call.tools.iter();
                tools.map(|tool| call.request(era, tool)).collect()
            }
            Self::List { pages } => pages
                .iter()
                .map(|page| list(era, page.cursor.as_deref()))
                .collect(),
        }
    }

    /// The length of the text in the response, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Call(call) => call.bytes,
            Self::List { .. } => 0,
        }
    }

    /// Whether responses are so long that checking each as a whole would cost more than the server
    /// spends on it.
    pub(crate) fn is_long(&self) -> bool {
        self.bytes() > MAX_SHORT_BYTES
    }

    /// The check for the responses. Those of a limit are fixed.
    pub(crate) fn check(&self, is_fixed: bool) -> Check {
        Check::new(match self {
            _ if is_fixed => Expected::Same,
            Self::Call(call) => Expected::Text(call.argument().repeat(call.times)),
            Self::List { pages } => Expected::Page(pages.iter().map(|page| page.length).collect()),
        })
    }
}

/// A page of a list.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// The cursor of the page; `None` for the first page.
    pub(crate) cursor: Option<String>,
    /// The length of the response, in bytes.
    pub(crate) length: usize,
}

/// A request for the page at `cursor`.
pub(crate) fn list(era: Era, cursor: Option<&str>) -> Request {
    let cursor = cursor.map(|cursor| ("cursor".to_owned(), json!(cursor)));
    Request::new(era, "tools/list", cursor.into_iter().collect())
}

/// The number of tools on a page, and the cursor of the next page.
pub(crate) fn read_page(answer: &[u8]) -> anyhow::Result<(usize, Option<String>)> {
    let answer: Value = serde_json::from_slice(answer).context("no JSON")?;
    let tools = answer.pointer("/result/tools").and_then(Value::as_array);
    let tools = tools.with_context(|| format!("no tools: {answer}"))?;
    let next = answer.pointer("/result/nextCursor").and_then(Value::as_str);
    Ok((tools.len(), next.map(str::to_owned)))
}

/// A text of this length without characters that JSON escapes.
pub(super) fn text(bytes: usize) -> String {
    "The quick brown fox jumps over the lazy dog, again and again. "
        .chars()
        .cycle()
        .take(bytes)
        .collect()
}
