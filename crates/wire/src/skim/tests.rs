use bytes::BytesMut;
use proptest::prelude::*;

use super::{EnvelopeSkimmer, MAX_ENVELOPES, MAX_TOKEN_BYTES, SkimmedEnvelope, skim};
use crate::testing::{id, json, message, string_literal};
use crate::{Id, Message, encode};

fn request(id: impl Into<Id>) -> SkimmedEnvelope {
    SkimmedEnvelope::Request(id.into())
}

fn response(id: impl Into<Id>) -> SkimmedEnvelope {
    SkimmedEnvelope::Response(id.into())
}

fn in_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<SkimmedEnvelope> {
    let mut skimmer = EnvelopeSkimmer::default();
    pieces.into_iter().for_each(|piece| skimmer.feed(piece));
    skimmer.finish()
}

#[test]
fn the_order_of_members_does_not_matter() {
    for text in [
        r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
        r#"{"result":{"content":[]},"jsonrpc":"2.0","id":5}"#,
        r#"{"id":5,"error":{"code":1,"message":"m"},"jsonrpc":"2.0"}"#,
        " \r\n{ \"id\" : 5 , \"result\" : null , \"jsonrpc\" : \"2.0\" } ",
    ] {
        assert_eq!(skim(text.as_bytes()), [response(5_i64)], "{text}");
    }
    for text in [
        r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{}}"#,
        r#"{"params":{"result":1},"method":"m","jsonrpc":"2.0","id":"a"}"#,
    ] {
        assert_eq!(skim(text.as_bytes()), [request("a")], "{text}");
    }
}

#[test]
fn members_of_nested_values_and_text_in_strings_do_not_count() {
    let nested = r#"{"id":1,"method":"m","jsonrpc":"2.0","result":1}"#;
    let quoted = r#""{\"id\":2,\"method\":\"m\"}\\""#;
    let text =
        format!(r#"{{"result":{{"a":[{nested},{quoted}]}},"x":{quoted},"jsonrpc":"2.0","id":7}}"#);
    assert_eq!(skim(text.as_bytes()), [response(7_i64)]);
    let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{nested}}}"#);
    assert_eq!(skim(text.as_bytes()), [], "a notification has no id");
}

#[test]
fn an_id_has_one_meaning_or_none() {
    for unreadable in [
        r#"{"jsonrpc":"2.0","id":5,"result":1,"id":6}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":1,"id":5}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":1,"id":{"id":6}}"#,
        r#"{"jsonrpc":"2.0","id":{"id":6},"result":1}"#,
        r#"{"jsonrpc":"2.0","id":[5],"result":1}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":5.0,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":5 6,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":5"6","result":1}"#,
        r#"{"jsonrpc":"2.0","id":5{},"result":1}"#,
        r#"{"jsonrpc":"2.0","id":,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":-,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":"\ud800","result":1}"#,
        r#"{"jsonrpc":"2.0","result":"id","x":5}"#,
    ] {
        assert_eq!(skim(unreadable.as_bytes()), [], "{unreadable}");
    }
}

#[test]
fn keys_and_ids_may_have_escapes() {
    let text = r#"{"jsonrpc":"2.0","\u0069d":"a\"\\\u00e9","r\u0065sult":1}"#;
    assert_eq!(skim(text.as_bytes()), [response("a\"\\\u{e9}")]);
}

/// A log line that quotes a message is not a message.
#[test]
fn only_messages_count() {
    let sent = r#"{"jsonrpc":"2.0","id":5,"result":{}}"#;
    for text in [
        format!("sent {sent}"),
        format!("[debug] sent {sent}"),
        format!("[debug {sent}]"),
        format!("\"{sent}\""),
        format!("{{debug: {sent}}}"),
        r#"{"level":"error","id":5,"error":"x"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":5}"#.to_owned(),
        String::new(),
        "]}]}".to_owned(),
    ] {
        assert_eq!(skim(text.as_bytes()), [], "{text}");
    }
}

#[test]
fn broken_input_gives_what_was_complete() {
    let text = r#"{"jsonrpc":"2.0","id":5,"result":{"content":[{"text":"abc"#;
    assert_eq!(skim(text.as_bytes()), [response(5_i64)]);
    let text = r#"{"jsonrpc":"2.0","id":5,"result":}}}},"id":6,"#;
    assert_eq!(skim(text.as_bytes()), [response(5_i64)]);
    // The id is incomplete: more digits may have followed.
    let text = r#"{"jsonrpc":"2.0","result":1,"id":5"#;
    assert_eq!(skim(text.as_bytes()), []);
}

#[test]
fn every_message_of_a_batch_is_found() {
    let text = r#" [{"jsonrpc":"2.0","id":1,"result":[]},
        {"jsonrpc":"2.0","method":"n"}, {"method":"m","id":"2","jsonrpc":"2.0"}]"#;
    let expected = [response(1_i64), request("2")];
    assert_eq!(skim(text.as_bytes()), expected);
    assert_eq!(in_pieces(text.as_bytes().chunks(1)), expected);
}

#[test]
fn memory_is_bounded() {
    let mut skimmer = EnvelopeSkimmer::default();
    skimmer.feed(br#"[{"jsonrpc":"2.0","result":0,"id":""#);
    for _ in 0..1000 {
        skimmer.feed(&[b'x'; 1000]);
        assert!(skimmer.token.capacity() <= 2 * MAX_TOKEN_BYTES);
    }
    skimmer.feed(br#""}"#);
    for number in 0..2 * MAX_ENVELOPES {
        skimmer.feed(format!(r#",{{"jsonrpc":"2.0","id":{number},"result":0}}"#).as_bytes());
    }
    let found = skimmer.finish();
    assert_eq!(found.len(), MAX_ENVELOPES);
    assert_eq!(found.first(), Some(&response(0_i64)));
}

fn written(message: &Message) -> BytesMut {
    let mut text = BytesMut::new();
    encode::message(&mut text, message);
    text
}

/// Members of a response in any order, with others between them whose keys mean nothing here.
fn response_members() -> impl Strategy<Value = (Id, String)> {
    let other = (string_literal(), json())
        .prop_filter("a member of JSON-RPC", |(key, _)| {
            let key: String = serde_json::from_str(key).unwrap();
            !["jsonrpc", "id", "method", "result", "error"].contains(&key.as_str())
        })
        .prop_map(|(key, value)| format!("{key}:{value}"));
    let nested = Just(r#""nested":[{"id":1,"method":"m"},{"id":"]}"}]"#.to_owned());
    let members = (id(), json(), other, nested).prop_flat_map(|(id, result, other, nested)| {
        let members = vec![
            r#""jsonrpc": "2.0""#.to_owned(),
            format!(r#""id" :{id}"#),
            format!(r#""result":{result}"#),
            other,
            nested,
        ];
        (Just(id), Just(members).prop_shuffle())
    });
    members.prop_map(|(id, members)| (id, format!("{{{}}}", members.join(" , "))))
}

proptest! {
    #[test]
    fn the_envelope_of_every_message_is_found_wherever_it_is_cut(message in message()) {
        let text = written(&message);
        let expected = match message {
            Message::Request(message) => vec![request(message.id)],
            Message::Response(message) => message.id.map(response).into_iter().collect(),
            Message::Notification(_) => vec![],
        };
        for at in 0..=text.len() {
            let (one, two) = text.split_at(at);
            prop_assert_eq!(&in_pieces([one, two]), &expected);
        }
        prop_assert_eq!(in_pieces(text.chunks(1)), expected);
    }

    #[test]
    fn the_id_of_a_response_is_found_in_any_order((id, text) in response_members()) {
        let expected = [SkimmedEnvelope::Response(id)];
        for at in 0..=text.len() {
            let (one, two) = text.as_bytes().split_at(at);
            prop_assert_eq!(&in_pieces([one, two])[..], &expected);
        }
    }

    /// The result is the same however the input is split.
    #[test]
    fn cuts_make_no_difference(text in r#"[\[{"}\],:\\ 1a]{0,40}|[{]"id":[^a]{0,20}"#, size in 1..5_usize) {
        let whole = skim(text.as_bytes());
        prop_assert_eq!(in_pieces(text.as_bytes().chunks(size)), whole);
    }
}
