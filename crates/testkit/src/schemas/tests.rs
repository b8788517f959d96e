use serde_json::json;

use super::*;

fn check(revision: Revision, method: Option<&str>, message: &Value) -> Result<(), Invalid> {
    Schemas::get().check_server_message(revision, method, message.to_string().as_bytes())
}

#[test]
fn results_are_judged_by_the_method_they_answer() {
    let message = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}});
    let legacy = Revision::V2025_06_18;
    assert_eq!(check(legacy, Some("tools/call"), &message), Ok(()));
    let wrong = check(legacy, Some("tools/list"), &message).unwrap_err();
    assert!(wrong.reason.starts_with("no ListToolsResult"), "{wrong}");
    let unasked = check(legacy, None, &message).unwrap_err();
    assert!(unasked.reason.contains("without a request"), "{unasked}");
}

#[test]
fn methods_without_a_result_of_their_own_answer_with_an_empty_one() {
    let message = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    for method in ["ping", "logging/setLevel", "resources/subscribe"] {
        assert_eq!(check(Revision::V2024_11_05, Some(method), &message), Ok(()));
    }
}

/// BASE-12, MRTR26-02, MRTR26-04.
#[test]
fn stateless_results_are_typed() {
    let stateless = Revision::V2026_07_28;
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let untyped = result(json!({"content": []}));
    assert!(check(stateless, Some("tools/call"), &untyped).is_err());
    let asking = result(json!({"resultType": "input_required", "requestState": "s"}));
    assert_eq!(check(stateless, Some("tools/call"), &asking), Ok(()));
    assert!(check(stateless, Some("tools/list"), &asking).is_err());
    let idle = result(json!({"resultType": "input_required"}));
    assert!(check(stateless, Some("tools/call"), &idle).is_err());
}

/// BASE-16: a stateless server sends no requests; others send those of their revision. A client may
/// declare elicitation before its revision has it, and gets the forms of 2025-06-18.
#[test]
fn requests_are_those_of_the_revision() {
    let roots = json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"});
    assert_eq!(check(Revision::V2024_11_05, None, &roots), Ok(()));
    assert!(check(Revision::V2026_07_28, None, &roots).is_err());
    let elicitation = |fields: Value| {
        let schema = json!({"type": "object", "properties": fields});
        json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create",
            "params": {"message": "?", "requestedSchema": schema}})
    };
    let plain = elicitation(json!({"a": {"type": "string"}}));
    let list = json!({"type": "array", "items": {"type": "string", "enum": ["x"]}});
    let rich = elicitation(json!({"a": list}));
    for revision in [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
    ] {
        assert_eq!(check(revision, None, &plain), Ok(()));
        assert!(check(revision, None, &rich).is_err());
    }
    assert_eq!(check(Revision::V2025_11_25, None, &rich), Ok(()));
    assert!(check(Revision::V2026_07_28, None, &plain).is_err());
}

/// ERR26-03, ERR26-04, and the errors that have their own definition.
#[test]
fn error_codes_are_those_of_the_revision() {
    let error = |code: i64, data: Value| json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m", "data": data}});
    let stateless = Revision::V2026_07_28;
    assert_eq!(
        check(Revision::V2025_11_25, None, &error(-32002, json!({}))),
        Ok(())
    );
    assert!(check(stateless, None, &error(-32002, json!({}))).is_err());
    assert!(check(stateless, None, &error(-32021, json!({}))).is_err());
    let missing = json!({"requiredCapabilities": {"sampling": {}}});
    assert_eq!(check(stateless, None, &error(-32021, missing)), Ok(()));
}

#[test]
fn an_unreadable_id_is_null_only_where_an_id_is_required() {
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "m"}});
    assert_eq!(check(Revision::V2025_06_18, None, &error), Ok(()));
    assert!(check(Revision::V2025_11_25, None, &error).is_err());
}
