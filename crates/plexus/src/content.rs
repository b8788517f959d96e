//! Result content for users: text as it is, other content described or saved.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use base64::prelude::{BASE64_STANDARD, Engine};
use plexus_mcp_core::{ContentBlock, ResourceContents};
use plexus_mcp_protocol::messages::{EmbeddedResource, MediaContent};

use crate::printable::one_line;

/// The blocks, one after the other. Binary content is saved to `folder`, if there is one.
///
/// # Errors
/// It cannot be saved.
pub(crate) fn text_of(blocks: &[ContentBlock], folder: Option<&Path>) -> anyhow::Result<String> {
    let mut text = String::new();
    for block in blocks {
        let shown = block_text(block, folder)?;
        text.push_str(&shown);
        if !shown.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

/// The contents of a resource, in the same way.
///
/// # Errors
/// They cannot be saved.
pub(crate) fn resource_text(
    contents: &ResourceContents,
    folder: Option<&Path>,
) -> anyhow::Result<String> {
    match contents {
        ResourceContents::Text { text, .. } => Ok(text.clone()),
        ResourceContents::Blob {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let kind = mime_type.as_deref().unwrap_or("application/octet-stream");
            binary(&format!("resource {uri}"), kind, blob, folder)
        }
    }
}

/// The bytes of a resource; `None` if it is text or invalid Base64.
pub(crate) fn bytes_of(contents: &ResourceContents) -> Option<Vec<u8>> {
    match contents {
        ResourceContents::Text { .. } => None,
        ResourceContents::Blob { blob, .. } => BASE64_STANDARD.decode(blob).ok(),
    }
}

fn block_text(block: &ContentBlock, folder: Option<&Path>) -> anyhow::Result<String> {
    match block {
        ContentBlock::Text(text) => Ok(text.text.clone()),
        ContentBlock::Image(media) => media_text("image", media, folder),
        ContentBlock::Audio(media) => media_text("audio", media, folder),
        ContentBlock::ResourceLink(resource) => Ok(one_line(&format!(
            "[resource {} ({}); to read it: plexus read {}]",
            resource.uri, resource.name, resource.uri
        ))),
        ContentBlock::Resource(EmbeddedResource { resource, .. }) => {
            resource_text(resource, folder)
        }
        ContentBlock::Other(raw) => Ok(raw.as_str().to_owned()),
        other => Ok(other.to_raw().as_str().to_owned()),
    }
}

fn media_text(what: &str, media: &MediaContent, folder: Option<&Path>) -> anyhow::Result<String> {
    binary(what, &media.mime_type, &media.data, folder)
}

fn binary(what: &str, kind: &str, data: &str, folder: Option<&Path>) -> anyhow::Result<String> {
    let Ok(bytes) = BASE64_STANDARD.decode(data) else {
        return Ok(one_line(&format!(
            "[{what}, {kind}, which is not valid Base64]"
        )));
    };
    let size = size(bytes.len());
    let saved = match folder {
        Some(folder) => {
            let file = save(&bytes, kind, folder)
                .with_context(|| format!("cannot save to {}", folder.display()))?;
            format!(", saved to {}", file.display())
        }
        None => String::new(),
    };
    Ok(one_line(&format!("[{what}, {kind}, {size}{saved}]")))
}

/// Writes a new file.
fn save(bytes: &[u8], kind: &str, folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let ending = ending(kind);
    for number in 1_u32.. {
        let file = folder.join(format!("content-{number}.{ending}"));
        match File::create_new(&file) {
            Ok(mut created) => {
                created.write_all(bytes)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The file name extension for a media type. Text from a server is never used in a file name.
fn ending(kind: &str) -> &'static str {
    match kind.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "text/plain" => "txt",
        _ => "bin",
    }
}

/// A number of bytes, for users.
pub(crate) fn size(bytes: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "rounded anyway")]
    let thousands = bytes as f64 / 1000.0;
    match bytes {
        1 => "1 byte".to_owned(),
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{thousands:.1} kB"),
        _ => format!("{:.1} MB", thousands / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_content_is_described_or_saved() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        let image = ContentBlock::image([1, 2, 3], "image/png");
        let blocks = [ContentBlock::text("hello"), image.clone(), image];
        assert_eq!(
            text_of(&blocks, None).unwrap(),
            "hello\n[image, image/png, 3 bytes]\n[image, image/png, 3 bytes]\n"
        );
        let saved = text_of(&blocks, Some(&folder)).unwrap();
        assert!(
            saved.contains("content-1.png") && saved.contains("content-2.png"),
            "{saved}"
        );
        assert_eq!(fs::read(folder.join("content-2.png")).unwrap(), [1, 2, 3]);
    }

    #[test]
    fn sizes_are_short() {
        let sizes = [0, 1, 999, 1500, 2_500_000].map(size);
        assert_eq!(
            sizes,
            ["0 bytes", "1 byte", "999 bytes", "1.5 kB", "2.5 MB"]
        );
    }
}
