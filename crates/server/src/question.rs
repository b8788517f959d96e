//! Questions in the words of one revision.

use plexus_mcp::Revision;
use plexus_mcp::convert::{self, Unrepresentable};
use plexus_service::Question;
use plexus_wire::Raw;

use crate::seal::random;

/// The parameters with which a client of `revision` is asked.
///
/// # Errors
/// That client's revision cannot put the question.
pub(crate) fn params(
    question: &Question,
    revision: Revision,
) -> Result<Option<Raw>, Unrepresentable> {
    let features = revision.features();
    match question {
        Question::Roots => Ok(None),
        Question::Sample(params) => convert::sampling_params(params, features).map(Some),
        Question::Elicit(params) => {
            convert::elicitation_params(params, features, elicitation_id).map(Some)
        }
    }
}

fn elicitation_id() -> String {
    // An id that is not random is still an id; it only names the elicitation to its own client.
    let bytes = random::<16>().unwrap_or_default();
    format!("{:032x}", u128::from_le_bytes(bytes))
}
