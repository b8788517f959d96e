//! Encoding and decoding helpers of the message types.

use plexus_mcp_wire::{Kind, Raw};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Encodes one of our own messages.
pub(crate) fn to_raw<T: Serialize + ?Sized>(message: &T) -> Raw {
    #[expect(
        clippy::expect_used,
        reason = "encoding fails on maps with keys that are no strings, and no message has one"
    )]
    Raw::encode(message).expect("a message always encodes")
}

/// Gives each message type the inherent `to_raw`, so that its users need no trait in scope.
macro_rules! encodes {
    ($($message:ty),+ $(,)?) => {$(
        impl $message {
            /// This message as JSON.
            pub fn to_raw(&self) -> plexus_mcp_wire::Raw {
                $crate::messages::codec::to_raw(self)
            }
        }
    )+};
}
pub(super) use encodes;

/// For `skip_serializing_if`.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) fn is_false(flag: &bool) -> bool {
    !flag
}

/// Reads `null` as the default, for peers that write unset members as `null`.
pub(super) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Keeps a `null` that is present apart from a member that is absent.
pub(super) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}

/// Numbers that TypeScript calls `number` and the generated JSON Schema sometimes `integer`: whole
/// ones are written without a fraction.
pub(super) mod number {
    use super::{Serialize, Serializer};

    /// Beyond this a double no longer names one integer.
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    pub(in crate::messages) fn serialize<S: Serializer>(
        number: &f64,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if number.fract() == 0.0 && number.abs() <= MAX_SAFE_INTEGER {
            #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
            let integer = *number as i64;
            serializer.serialize_i64(integer)
        } else {
            serializer.serialize_f64(*number)
        }
    }

    /// The same for an optional member.
    pub(in crate::messages) mod optional {
        use super::{Serialize, Serializer};

        struct Number(f64);

        impl Serialize for Number {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                super::serialize(&self.0, serializer)
            }
        }

        #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
        pub(in crate::messages) fn serialize<S: Serializer>(
            number: &Option<f64>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            number.map(Number).serialize(serializer)
        }
    }
}

/// A member that is one value or an array of them, as the content of sampling messages is.
/// One value is written alone, which every revision reads.
pub(super) mod one_or_many {
    use super::{
        Deserialize, DeserializeOwned, Deserializer, Kind, Raw, Serialize, Serializer, decode,
    };

    pub(in crate::messages) fn serialize<T: Serialize, S: Serializer>(
        values: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match values {
            [value] => value.serialize(serializer),
            values => values.serialize(serializer),
        }
    }

    pub(in crate::messages) fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
    where
        T: DeserializeOwned,
        D: Deserializer<'de>,
    {
        let raw = Raw::deserialize(deserializer)?;
        if raw.kind() == Kind::Array {
            decode(&raw)
        } else {
            Ok(vec![decode(&raw)?])
        }
    }
}

/// Decodes inside a `Deserialize` implementation that had to look at the JSON first.
pub(super) fn decode<T: DeserializeOwned, E: serde::de::Error>(raw: &Raw) -> Result<T, E> {
    raw.decode().map_err(E::custom)
}

/// The `type` member of a content block.
///
/// Serde's own tagged enums buffer their input and so cannot hold raw JSON. The blocks read their
/// tag with this, and are then decoded.
pub(super) fn type_of<E: serde::de::Error>(raw: &Raw) -> Result<String, E> {
    #[derive(Deserialize)]
    struct Tag {
        r#type: String,
    }
    raw.decode().map(|tag: Tag| tag.r#type).map_err(E::custom)
}
