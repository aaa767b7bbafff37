//! The wire contract of Highwater.
//!
//! * [`v1`] holds the generated messages and, by feature, the `client` stub and the `server` trait.
//! * [`convert`] turns messages into the core's types and back. It is the only parser of what comes
//!   from outside: what it lets through is well formed, and what it refuses is a typed
//!   [`highwater_core::Malformed`].
//! * [`status`] turns a rejection into a gRPC status with details, and back.

#[cfg(any(feature = "client", feature = "server"))]
mod codec;
pub mod convert;
#[cfg(any(feature = "client", feature = "server"))]
mod shape;
pub mod status;

/// The generated messages and stubs of the package `highwater.v1`.
#[expect(
    clippy::large_enum_variant,
    reason = "generated code; a verdict is moved once, a box would be an allocation for each"
)]
#[cfg_attr(
    any(feature = "client", feature = "server"),
    expect(
        unused_qualifications,
        clippy::allow_attributes_without_reason,
        reason = "generated code names everything in full and places its own allowances"
    )
)]
#[cfg_attr(
    feature = "server",
    expect(
        clippy::allow_attributes,
        clippy::too_many_lines,
        reason = "generated code; the dispatch is one match over all calls"
    )
)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/highwater.v1.rs"));
}

/// The encoded file descriptor set of the service, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/highwater_descriptor.bin"));

/// Longest message that a server takes, in bytes: a commit of 16 MiB with what its framing,
/// conditions and authorities can add.
pub const MESSAGE_BYTES_MAX: usize = 20 << 20;

/// Most intents that one request asks about: an answer with all that is stored of each is below
/// 17 MiB.
pub const ASKED_INTENTS_MAX: usize = 32;

const _: () = assert!(highwater_core::limits::COMMIT_BYTES_MAX < MESSAGE_BYTES_MAX);
