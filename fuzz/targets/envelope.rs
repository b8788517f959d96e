//! A decoded message is encoded as one line, which decodes to the same message. Input is refused
//! only for the reason in the error: for example, it is not JSON, or exceeds a limit.

#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use plexus_mcp_wire::{DecodeError, Incoming, Limits, Message, Raw, decode, encode};
use serde::de::IgnoredAny;

const LIMITS: Limits = Limits {
    max_bytes: 64 * 1024,
    max_depth: 16,
    max_batch: 8,
};

fuzz_target!(|input: &[u8]| {
    let is_json = serde_json::from_slice::<IgnoredAny>(input).is_ok();
    let decoded = decode(Bytes::copy_from_slice(input), &LIMITS);
    let elements = match decoded {
        Ok(Incoming::Single(element)) => vec![element],
        Ok(Incoming::Batch(elements)) => elements,
        Err(error) => return check_refusal(&error, input, is_json),
    };
    assert!(is_json);
    assert!((1..=LIMITS.max_batch).contains(&elements.len()));
    for element in elements {
        match element {
            Ok(message) => check_round_trip(&message),
            Err(malformed) => {
                if let Some(id) = malformed.id {
                    assert_eq!(id.to_raw().decode::<plexus_mcp_wire::Id>().unwrap(), id);
                }
            }
        }
    }
});

fn check_refusal(error: &DecodeError, input: &[u8], is_json: bool) {
    match error {
        DecodeError::Syntax { .. } => assert!(!is_json),
        DecodeError::NotUtf8 => assert!(str::from_utf8(input).is_err()),
        DecodeError::TooLarge { limit } => assert!(input.len() > *limit),
        DecodeError::TooDeep { limit } => {
            let opened = input.iter().filter(|byte| matches!(byte, b'[' | b'{'));
            assert!(opened.count() > *limit);
        }
        DecodeError::EmptyBatch => {
            assert!(serde_json::from_slice::<[IgnoredAny; 0]>(input).is_ok());
        }
        DecodeError::BatchTooLong { limit } => {
            let elements: Vec<IgnoredAny> = serde_json::from_slice(input).unwrap();
            assert!(elements.len() > *limit);
        }
    }
}

fn check_round_trip(message: &Message) {
    let mut line = BytesMut::new();
    encode::message(&mut line, message);
    assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
    let Ok(Incoming::Single(Ok(again))) = decode(line.clone().freeze(), &Limits::default()) else {
        panic!("{line:?} does not decode");
    };
    assert_eq!(in_one_line(message.clone()), again);

    let mut line_again = BytesMut::new();
    encode::message(&mut line_again, &again);
    assert_eq!(line, line_again);
}

/// The message as it is after encoding: without line breaks in its payload.
fn in_one_line(mut message: Message) -> Message {
    let value = match &mut message {
        Message::Request(request) => {
            let params = request.params.take();
            request.params = params.map(|params| one_line(&params).into());
            None
        }
        Message::Notification(notification) => notification.params.as_mut(),
        Message::Response(response) => match &mut response.outcome {
            Ok(result) => Some(result),
            Err(error) => error.data.as_mut(),
        },
    };
    if let Some(value) = value {
        *value = one_line(value);
    }
    message
}

fn one_line(value: &Raw) -> Raw {
    let line = encode::single_line(value).into_owned();
    Raw::parse(line.into(), &Limits::default()).unwrap()
}
