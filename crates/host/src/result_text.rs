//! Results of servers as text for a model (C30).

use plexus_mcp_agents::model::Image;
use plexus_mcp_core::{CallToolResult, ContentBlock, ResourceContents};
use plexus_mcp_protocol::messages::MediaContent;

use crate::tool::ToolOutput;

/// The MIME types of pictures that models take.
const SHOWN_IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A result for the model: text blocks are joined with line breaks, other blocks become short
/// placeholders. Pictures are given in addition.
pub(crate) fn output(result: &CallToolResult) -> ToolOutput {
    let raw = result.to_raw();
    let mut lines: Vec<String> = result.content.iter().map(line).collect();
    // A server may return structured content alone.
    if lines.is_empty()
        && let Some(structured) = &result.structured_content
    {
        lines.push(structured.as_str().to_owned());
    }
    let images = result.content.iter().filter_map(image).collect();
    ToolOutput {
        text: lines.join("\n"),
        images,
        is_error: result.is_error,
        raw: Some(raw),
        ..ToolOutput::default()
    }
}

fn line(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(media) => placeholder("image", media),
        ContentBlock::Audio(media) => placeholder("audio", media),
        ContentBlock::ResourceLink(resource) => format!("[resource {}]", resource.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::Text { uri, text, .. } => format!("[resource {uri}]\n{text}"),
            ResourceContents::Blob { uri, .. } => format!("[resource {uri}]"),
        },
        ContentBlock::Other(_) => "[content of an unknown kind]".to_owned(),
        _ => "[content]".to_owned(),
    }
}

fn placeholder(kind: &str, media: &MediaContent) -> String {
    // Four characters of Base64 stand for three bytes, and padding for none.
    let bytes = media.data.trim_end_matches('=').len() * 3 / 4;
    format!("[{kind} {}, {}]", media.mime_type, size(bytes))
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KB", bytes.div_ceil(1024)),
        _ => format!("{} MB", bytes.div_ceil(1024 * 1024)),
    }
}

fn image(block: &ContentBlock) -> Option<Image> {
    let ContentBlock::Image(MediaContent {
        data, mime_type, ..
    }) = block
    else {
        return None;
    };
    SHOWN_IMAGES.contains(&mime_type.as_str()).then(|| Image {
        mime_type: mime_type.clone(),
        data: data.clone(),
    })
}

#[cfg(test)]
mod tests {
    use plexus_mcp_core::Raw;
    use plexus_mcp_protocol::messages::Resource;

    use super::*;

    /// C30, S001-06, S001-48, S004-60.
    #[test]
    fn blocks_become_lines() {
        let result = CallToolResult::new([
            ContentBlock::text("one"),
            ContentBlock::image(vec![0; 12 * 1024], "image/png"),
            ContentBlock::audio(vec![0; 100], "audio/wav"),
            ContentBlock::link(Resource::new("file:///a", "a")),
            ContentBlock::resource(ResourceContents::text("file:///b", "the text")),
            ContentBlock::resource(ResourceContents::blob("file:///c", [0; 3])),
            ContentBlock::text("two"),
        ]);
        let output = output(&result);
        let expected = "one\n[image image/png, 12 KB]\n[audio audio/wav, 100 B]\n[resource file:///a]\n\
                        [resource file:///b]\nthe text\n[resource file:///c]\ntwo";
        assert_eq!(output.text, expected);
        assert_eq!(output.images.len(), 1);
        assert_eq!(output.raw, Some(result.to_raw()), "the raw result is kept");
        assert!(!output.is_error);
    }

    /// C31: the server's own text, marked as an error.
    #[test]
    fn errors_keep_their_text() {
        let output = output(&CallToolResult::error("No such branch: x"));
        assert_eq!(
            (output.text.as_str(), output.is_error),
            ("No such branch: x", true)
        );
    }

    #[test]
    fn structured_content_alone_is_shown() {
        let mut result = CallToolResult::new([]);
        result.structured_content = Some(Raw::from_static(r#"{"a":1}"#));
        assert_eq!(output(&result).text, r#"{"a":1}"#);
    }

    /// A picture that no model takes is not sent.
    #[test]
    fn only_known_pictures_are_given() {
        let result = CallToolResult::new([ContentBlock::image([0], "image/svg+xml")]);
        assert!(output(&result).images.is_empty());
    }
}
