//! Effects and rows as bytes, and back. Integers are big-endian; a length stands before what it
//! counts; every byte must be used. `docs/FORMAT.md` is the reference.
//!
//! Decoding never trusts a length: it is compared with what is left before anything is allocated.

mod effect;
mod read;
mod row;
mod write;

pub use effect::{decode_effect, encode_effect};
pub use read::DecodeError;
pub use row::{
    decode_domain, decode_fence, decode_record, encode_domain, encode_fence, encode_record,
};
