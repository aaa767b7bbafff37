//! Effects and rows as bytes, and back. Integers are big-endian; a length stands before what it
//! counts; every byte must be used. `docs/FORMAT.md` is the reference.
//!
//! Decoding never trusts a length: it is compared with what is left before anything is allocated.

mod command;
mod effect;
mod intent;
mod lease;
mod read;
mod receipt;
mod row;
mod write;

pub use command::encode_command;
pub use effect::{decode_effect, encode_effect};
pub use intent::{decode_intent, encode_intent};
pub use lease::{decode_lease, encode_lease};
pub use read::DecodeError;
pub use row::{
    decode_domain, decode_fence, decode_record, encode_domain, encode_fence, encode_record,
};
