//! Questions, lowered to one revision.

use plexus_mcp_core::Question;
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::convert::{self, LoweredElicitation, LoweredForm, Unrepresentable};
use plexus_mcp_wire::Raw;

use crate::seal::random;

/// A question as a client of one revision is asked it.
pub(crate) struct LoweredQuestion {
    /// The params of the request.
    pub(crate) params: Option<Raw>,
    /// How the answer becomes one to the original form, if the form was lowered.
    pub(crate) form: Option<LoweredForm>,
}

/// Lowers `question` to `revision`.
///
/// # Errors
/// The revision cannot express the question.
pub(crate) fn lowered(
    question: &Question,
    revision: Revision,
) -> Result<LoweredQuestion, Unrepresentable> {
    let features = revision.features();
    let as_is = |params| LoweredQuestion { params, form: None };
    match question {
        Question::Roots => Ok(as_is(None)),
        Question::Sample(params) => {
            convert::sampling_params(params, features).map(|params| as_is(Some(params)))
        }
        Question::Elicit(params) => {
            let LoweredElicitation { params, form } =
                convert::elicitation(params, features, elicitation_id)?;
            let params = Some(params);
            Ok(LoweredQuestion { params, form })
        }
    }
}

fn elicitation_id() -> String {
    // An id that is not random is still an id; it only names the elicitation to its own client.
    let bytes = random::<16>().unwrap_or_default();
    format!("{:032x}", u128::from_le_bytes(bytes))
}
