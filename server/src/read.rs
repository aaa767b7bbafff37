//! What reads have in common: the destination that is meant, and the authority that must hold.

use highwater::{Error, Snapshot, Store};
use highwater_core::{
    Authority, DomainName, ExpectedDestination, Guard, GuardedRead, Identity, KeyRange, Malformed,
    Prefix, Reason,
};
use highwater_proto::convert::{FromWire, optional, parts, required};
use highwater_proto::status::from_rejection;
use highwater_proto::v1;
use highwater_proto::v1::{scan_request, watch_request};
use tonic::Status;

use crate::pages::Keys;
use crate::status;

/// What a read is of.
pub(crate) struct Scope {
    /// The domain.
    pub(crate) domain: DomainName,
    /// The destination that the caller means.
    pub(crate) destination: Option<ExpectedDestination>,
    /// Who calls.
    pub(crate) caller: Option<Identity>,
}

impl Scope {
    /// Reads it from a request.
    pub(crate) fn read(
        domain: &str,
        destination: Option<v1::Destination>,
        caller: Option<Identity>,
    ) -> Result<Self, Malformed> {
        Ok(Self {
            domain: DomainName::new(domain)?,
            destination: optional(destination)?,
            caller,
        })
    }

    /// A snapshot of the destination that is meant, in which the authority, if one is given, is
    /// still the highest of its guards. Where no guards are named, it is `own`'s.
    pub(crate) fn snapshot(
        &self,
        store: &Store,
        guard: Option<v1::ReadGuard>,
        own: impl FnOnce(&Snapshot) -> Result<Option<Guard>, Error>,
    ) -> Result<Snapshot, Status> {
        expect(store, self.destination.as_ref())?;
        let snapshot = store.snapshot().map_err(status::of)?;
        let Some(wire) = guard else {
            return Ok(snapshot);
        };
        let malformed = |malformed| status::malformed(malformed, &store.status());
        let authority: Authority = required(wire.authority, parts::AUTHORITY).map_err(malformed)?;
        let guards = wire
            .guards
            .into_iter()
            .map(Guard::from_wire)
            .collect::<Result<Vec<_>, _>>();
        let mut guards = guards.map_err(malformed)?;
        if guards.is_empty() {
            guards.extend(own(&snapshot).map_err(status::of)?);
        }
        let read = GuardedRead {
            domain: self.domain.clone(),
            destination: self.destination,
            authority,
            caller: self.caller.clone(),
            guards,
        };
        snapshot.admit(&read).map_err(status::of)?;
        Ok(snapshot)
    }
}

/// Refuses a request that is meant for another destination or incarnation.
pub(crate) fn expect(store: &Store, expected: Option<&ExpectedDestination>) -> Result<(), Status> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let own = store.status();
    if expected.id == own.destination && expected.incarnation == own.incarnation {
        return Ok(());
    }
    Err(from_rejection(&status::refused(
        Reason::WrongDestination,
        &own,
    )))
}

fn prefix(bytes: bytes::Bytes) -> Result<KeyRange, Malformed> {
    Ok(KeyRange::of_prefix(Prefix::from_wire(bytes)?.as_bytes()))
}

/// The keys of a scan.
pub(crate) fn scanned(keys: Option<scan_request::Keys>) -> Result<Keys, Malformed> {
    match keys {
        None => Err(Malformed::Missing { what: parts::KEYS }),
        Some(scan_request::Keys::Range(range)) => Ok(Keys::Range(KeyRange::from_wire(range)?)),
        Some(scan_request::Keys::Prefix(bytes)) => Ok(Keys::Range(prefix(bytes)?)),
        Some(scan_request::Keys::Guard(guard)) => Ok(Keys::Guard(Guard::from_wire(guard)?)),
    }
}

/// The keys of a watch.
pub(crate) fn watched(keys: Option<watch_request::Keys>) -> Result<KeyRange, Malformed> {
    match keys {
        None => Err(Malformed::Missing { what: parts::KEYS }),
        Some(watch_request::Keys::Range(range)) => KeyRange::from_wire(range),
        Some(watch_request::Keys::Prefix(bytes)) => prefix(bytes),
    }
}
