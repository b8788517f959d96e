//! The official JSON schemas, one per revision, to check the messages of servers.

mod allowances;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use jsonschema::Validator;
use plexus_mcp_protocol::{ElicitationModes, Revision};
use serde_json::{Value, json};

/// Why a message is not valid for its revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{revision}: {reason}")]
pub struct Invalid {
    /// The revision whose schema was used.
    pub revision: Revision,
    /// The reason.
    pub reason: String,
}

/// The schemas of all revisions, loaded and compiled on first use.
#[derive(Default)]
pub struct Schemas {
    documents: Mutex<HashMap<Revision, Arc<Value>>>,
    validators: Mutex<HashMap<(Revision, String), Arc<Validator>>>,
}

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::default);

impl Schemas {
    /// The schemas that `./check setup` has put into `.tools/schemas`.
    pub fn get() -> &'static Self {
        &SCHEMAS
    }

    /// Checks one message of a server. `request_method` is the method of its request, if it is a
    /// response whose request is known.
    ///
    /// # Errors
    /// The schema or the text of the revision does not allow the message.
    pub fn check_server_message(
        &self,
        revision: Revision,
        request_method: Option<&str>,
        raw: &[u8],
    ) -> Result<(), Invalid> {
        let check = |revision| Check {
            schemas: self,
            revision,
            document: self.document(revision),
        };
        let message: Value = serde_json::from_slice(raw)
            .map_err(|error| check(revision).invalid(format!("no JSON: {error}")))?;
        let method = message.get("method").and_then(Value::as_str);
        let is_early_elicitation = method == Some("elicitation/create")
            && revision.features().elicitation == ElicitationModes::Absent;
        // A client may declare elicitation in a revision from before it, and is asked as in the first
        // revision that has it.
        let check = check(if is_early_elicitation {
            Revision::V2025_06_18
        } else {
            revision
        });
        match (method, message.get("id"), message.get("error")) {
            (Some(method), Some(_), _) => check.request(method, &message),
            (Some(method), None, _) => check.notification(method, &message),
            (None, _, Some(error)) => check.error(error, &message),
            (None, _, None) => check.response(request_method, &message),
        }
    }

    fn document(&self, revision: Revision) -> Arc<Value> {
        let mut documents = lock(&self.documents);
        let document = documents
            .entry(revision)
            .or_insert_with(|| Arc::new(load(revision)));
        Arc::clone(document)
    }

    fn validator(&self, revision: Revision, definition: &str) -> Arc<Validator> {
        let key = (revision, definition.to_owned());
        let mut validators = lock(&self.validators);
        let compile = || {
            let document = self.document(revision);
            let place = definitions_member(&document);
            let mut schema = json!({ "$ref": format!("#/{place}/{definition}") });
            for member in ["$schema", place] {
                schema[member] = document[member].clone();
            }
            let validator = jsonschema::validator_for(&schema);
            Arc::new(validator.unwrap_or_else(|error| panic!("{revision} {definition}: {error}")))
        };
        Arc::clone(validators.entry(key).or_insert_with(compile))
    }
}

impl std::fmt::Debug for Schemas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schemas").finish_non_exhaustive()
    }
}

fn load(revision: Revision) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../.tools/schemas")
        .join(revision.as_str())
        .join("schema.json");
    let text = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run ./check setup", path.display()));
    let mut document =
        serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    allowances::apply(revision, &mut document);
    document
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draft 7 and 2020-12 have different names for the member with the definitions.
fn definitions_member(document: &Value) -> &'static str {
    if document.get("$defs").is_some() {
        "$defs"
    } else {
        "definitions"
    }
}

/// Checks one message against the schema of one revision.
struct Check<'a> {
    schemas: &'a Schemas,
    revision: Revision,
    document: Arc<Value>,
}

impl Check<'_> {
    fn request(&self, method: &str, message: &Value) -> Result<(), Invalid> {
        self.against("JSONRPCRequest", message)?;
        let definition = self.member_of("ServerRequest", method)?;
        self.against(&definition, message)
    }

    fn notification(&self, method: &str, message: &Value) -> Result<(), Invalid> {
        self.against("JSONRPCNotification", message)?;
        let definition = self.member_of("ServerNotification", method)?;
        self.against(&definition, message)
    }

    /// Some errors have their own definition, found by their code.
    fn error(&self, error: &Value, message: &Value) -> Result<(), Invalid> {
        self.against(
            self.first_of(["JSONRPCErrorResponse", "JSONRPCError"]),
            message,
        )?;
        let code = error.get("code").and_then(Value::as_i64);
        let special = self.definitions().find(|(_, definition)| {
            let parts = definition.pointer("/properties/error/allOf");
            let parts = parts.and_then(Value::as_array).into_iter().flatten();
            parts
                .filter_map(|part| part.pointer("/properties/code/const"))
                .any(|constant| constant.as_i64() == code)
        });
        match special {
            Some((name, _)) => self.against(name, message),
            // ERR26-01, ERR26-03, ERR26-04.
            None if self.is_stateless()
                && code.is_some_and(|code| (-32099..=-32000).contains(&code)) =>
            {
                Err(self.invalid(format!("must not send the code {code:?}: {message}")))
            }
            None => Ok(()),
        }
    }

    fn response(&self, method: Option<&str>, message: &Value) -> Result<(), Invalid> {
        self.against(
            self.first_of(["JSONRPCResultResponse", "JSONRPCResponse"]),
            message,
        )?;
        let Some(method) = method else {
            return Err(self.invalid(format!("a result without a request: {message}")));
        };
        let result = &message["result"];
        if self.is_stateless() {
            match result["resultType"].as_str() {
                Some("complete") => {}
                // MRTR26-02, MRTR26-04.
                Some("input_required")
                    if ["tools/call", "prompts/get", "resources/read"].contains(&method)
                        && (result.get("inputRequests").is_some()
                            || result.get("requestState").is_some()) =>
                {
                    return self.against("InputRequiredResult", result);
                }
                // BASE-12.
                _ => return Err(self.invalid(format!("no result of {method}: {message}"))),
            }
        }
        let request = self.member_of("ClientRequest", method)?;
        let result_name = request.replace("Request", "Result");
        let is_defined = self.definitions().any(|(name, _)| *name == result_name);
        self.against(
            if is_defined {
                &result_name
            } else {
                "EmptyResult"
            },
            result,
        )
    }

    fn is_stateless(&self) -> bool {
        self.revision == Revision::V2026_07_28
    }

    /// The definition for `method` among those that `union` lists.
    fn member_of(&self, union: &str, method: &str) -> Result<String, Invalid> {
        let document = &*self.document;
        let place = definitions_member(document);
        let members = document[place][union]["anyOf"].as_array();
        let members = members.into_iter().flatten();
        let names = members
            .filter_map(|member| member["$ref"].as_str())
            .filter_map(|reference| reference.rsplit('/').next());
        names
            .into_iter()
            .find(|name| document[place][name]["properties"]["method"]["const"] == method)
            .map(str::to_owned)
            .ok_or_else(|| self.invalid(format!("{method} is no {union}")))
    }

    fn first_of(&self, names: [&'static str; 2]) -> &'static str {
        let [preferred, other] = names;
        if self.definitions().any(|(name, _)| name == preferred) {
            preferred
        } else {
            other
        }
    }

    fn definitions(&self) -> impl Iterator<Item = (&String, &Value)> {
        let document = &*self.document;
        let definitions = document[definitions_member(document)].as_object();
        definitions.into_iter().flatten()
    }

    fn against(&self, definition: &str, value: &Value) -> Result<(), Invalid> {
        let validator = self.schemas.validator(self.revision, definition);
        let errors: Vec<_> = validator
            .iter_errors(value)
            .map(|error| format!("{} {error}", error.instance_path()))
            .collect();
        if errors.is_empty() {
            return Ok(());
        }
        Err(self.invalid(format!(
            "no {definition}: {}; in {value}",
            errors.join("; ")
        )))
    }

    fn invalid(&self, reason: String) -> Invalid {
        Invalid {
            revision: self.revision,
            reason,
        }
    }
}

#[cfg(test)]
mod tests;
