//! Answers to the questions of a server. Every question is accepted.

use plexus_mcp_core::{
    AskError, CreateMessageResult, ElicitParams, ElicitResult, Question, Raw, Role, Root,
    SamplingContent,
};
use plexus_mcp_protocol::messages::ListRootsResult;
use serde_json::Value;

use crate::example;

/// Answers a question. Forms are accepted with the proposed values: every field has its default, or
/// else an example of its type.
pub(crate) fn answer(question: &Question) -> Result<Raw, AskError> {
    match question {
        Question::Elicit(params) => {
            elicited(params).map_err(|error| AskError::Unaskable(error.to_string()))
        }
        Question::Sample(_) => Ok(sampled().to_raw()),
        Question::Roots => {
            let roots = vec![Root::new("file:///conformance")];
            Ok(ListRootsResult { roots }.to_raw())
        }
    }
}

fn elicited(params: &Raw) -> Result<Raw, serde_json::Error> {
    let result = match params.decode()? {
        ElicitParams::Url(_) => ElicitResult::accept_url(),
        ElicitParams::Form(form) => {
            let schema: Value = form.requested_schema.decode()?;
            ElicitResult::accept(Raw::encode(&example::object(&schema))?)
        }
    };
    Ok(result.to_raw())
}

fn sampled() -> CreateMessageResult {
    CreateMessageResult {
        role: Role::Assistant,
        content: vec![SamplingContent::text("an answer")],
        model: "conformance-client".to_owned(),
        stop_reason: Some("endTurn".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(schema: &Value) -> Question {
        let params = serde_json::json!({ "message": "Please", "requestedSchema": schema });
        Question::Elicit(Raw::encode(&params).unwrap())
    }

    /// SEP-1034: the answer to a form has the default of each field.
    #[test]
    fn a_form_keeps_its_defaults() {
        let answer = answer(&question(&serde_json::json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "default": "John Doe" },
                "score": { "type": "number", "default": 95.5 },
                "verified": { "type": "boolean", "default": true },
            },
        })));
        let answer: Value = answer.unwrap().decode().unwrap();
        assert_eq!(
            answer,
            serde_json::json!({
                "action": "accept",
                "content": { "name": "John Doe", "score": 95.5, "verified": true },
            })
        );
    }

    #[test]
    fn a_page_is_agreed_to_without_content() {
        let params = ElicitParams::url("Please read", "https://example.com/terms").to_raw();
        let answer: Value = answer(&Question::Elicit(params)).unwrap().decode().unwrap();
        assert_eq!(answer, serde_json::json!({ "action": "accept" }));
    }

    #[test]
    fn a_question_without_a_form_is_refused() {
        let question = Question::Elicit(Raw::empty_object());
        assert!(matches!(answer(&question), Err(AskError::Unaskable(_))));
    }
}
