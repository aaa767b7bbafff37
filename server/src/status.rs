//! What the store could not do, as gRPC statuses.

use highwater::{Error, StorageError};
use highwater_core::{Availability, Malformed, Observed, Reason, Rejection};
use highwater_proto::convert::ToWire;
use highwater_proto::status::{from_rejection, not_executed, watch_too_old};
use highwater_proto::v1;
use tonic::{Code, Status};

/// The status of an error of a call that has one answer.
pub(crate) fn of(error: Error) -> Status {
    match error {
        Error::Rejected(rejection) => from_rejection(&rejection),
        Error::Indeterminate => Status::unknown(
            "whether the write happened isn't known: the store failed while it made it durable",
        ),
        Error::Closed => not_executed(Code::Unavailable, "the store is closed; nothing was done"),
        Error::AuditUnavailable { .. } => not_executed(
            Code::Unavailable,
            "the audit trail can't be written, so nothing was done; its disk needs room, or the \
             server's log says what fails",
        ),
        Error::TooOld { requested, oldest } => watch_too_old(&v1::WatchTooOld {
            requested: requested.get(),
            oldest: oldest.get(),
        }),
        Error::NotReached { requested, current } => Status::out_of_range(format!(
            "revision {requested} isn't reached yet, the current one is {current}; was it another \
             destination's?"
        )),
        Error::SnapshotExpired => Status::aborted(
            "the revision that was read isn't kept any more; go on with the last page token",
        ),
        Error::TooManySnapshots => not_executed(
            Code::ResourceExhausted,
            "too many reads are open; try again later",
        ),
        Error::Storage(StorageError::NoRandom { detail }) => {
            tracing::error!(%detail, "no random number");
            let said = "the server's system gave no random number; try again later";
            not_executed(Code::Unavailable, said)
        }
        // What exactly is wrong names files and keys: it is for the operator.
        Error::Storage(error) => {
            tracing::error!(%error, "the store could not read");
            Status::data_loss("the store could not read what it holds; its log says where")
        }
    }
}

/// The rejection of a request that can't be read, or can't be meant for this store.
pub(crate) fn refused(reason: Reason, store: &highwater::Status) -> Box<Rejection> {
    let observed = Observed {
        destination: store.destination,
        incarnation: store.incarnation,
        revision: store.revision,
        epoch: None,
        guard: None,
        fence: None,
        key: None,
        generation: None,
        metageneration: None,
        changed_at: None,
        digest: None,
        intent: None,
        lease: None,
    };
    Box::new(Rejection { reason, observed })
}

/// The status of a request that can't be read.
pub(crate) fn malformed(malformed: Malformed, store: &highwater::Status) -> Status {
    from_rejection(&refused(Reason::Malformed(malformed), store))
}

/// What a store says of itself, as a message.
pub(crate) fn report(status: &highwater::Status) -> v1::StatusResponse {
    let availability = match status.availability {
        Availability::Ready => v1::Availability::Ready,
        Availability::Poisoned => v1::Availability::Poisoned,
        Availability::Overloaded => v1::Availability::Overloaded,
        Availability::DiskFull => v1::Availability::DiskFull,
        Availability::RecoveryRequired => v1::Availability::RecoveryRequired,
    };
    let wide = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let counted = &status.counted;
    let audit = status.audit.unwrap_or_default();
    let counters = [
        ("accepted", counted.accepted),
        ("checkpoints", counted.checkpoints),
        ("groups", counted.groups),
        ("history_since", status.history_since.get()),
        ("indeterminate", counted.indeterminate),
        ("indexed_revision", status.indexed.get()),
        ("log_bytes", counted.log_bytes),
        ("log_disk_bytes", status.log.disk_bytes),
        ("log_segments", wide(status.log.segments)),
        ("log_spares", wide(status.log.spares)),
        ("memory_bytes", wide(status.memory_bytes)),
        ("queued", wide(status.queued)),
        ("remembers_since", status.remembers_since.get()),
        ("replayed", counted.replayed),
        ("snapshots", wide(status.snapshots)),
    ];
    let audited = [
        ("audit_failing", u64::from(audit.failing)),
        ("audit_lost", audit.lost),
        ("audit_refusing", u64::from(audit.refusing)),
        ("audit_revision", audit.audited),
        ("audit_sequence", audit.sequence),
        ("audit_suppressed", audit.suppressed),
    ];
    let audited = audited.into_iter().filter(|_| status.audit.is_some());
    let named = |(name, count): (&str, u64)| (String::from(name), count);
    let destination = highwater_core::ExpectedDestination {
        id: status.destination,
        incarnation: status.incarnation,
    };
    v1::StatusResponse {
        destination: Some(destination.to_wire()),
        revision: status.revision.get(),
        availability: i32::from(availability),
        domains: status.domains,
        value_bytes_max: wide(status.limits.value_bytes),
        message_bytes_max: wide(highwater_proto::MESSAGE_BYTES_MAX),
        server_version: env!("CARGO_PKG_VERSION").into(),
        counters: counters.into_iter().chain(audited).map(named).collect(),
        rejections: counted
            .rejected
            .iter()
            .map(|(name, count)| named((name, *count)))
            .collect(),
    }
}
