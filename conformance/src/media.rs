//! The picture and the recording that fixtures show.

use plexus_mcp_core::ContentBlock;

/// A PNG of one red pixel.
pub(crate) const PICTURE: &[u8] = include_bytes!("media/red-pixel.png");
pub(crate) const PICTURE_TYPE: &str = "image/png";

/// A WAV of ten milliseconds of silence.
const RECORDING: &[u8] = include_bytes!("media/silence.wav");

pub(crate) fn picture() -> ContentBlock {
    ContentBlock::image(PICTURE, PICTURE_TYPE)
}

pub(crate) fn recording() -> ContentBlock {
    ContentBlock::audio(RECORDING, "audio/wav")
}
