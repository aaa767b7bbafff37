//! Whether frames that are still to be written have a preallocated place. Nothing is accepted that
//! hasn't one, so a full disk can never strike between a verdict and its durability.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a frame takes beside its payload, at most: header, alignment, and the segment's seal.
pub(crate) const FRAME_OVERHEAD_BYTES: u64 = 256;

/// What the log's owner last said of its active segment.
#[derive(Debug, Default)]
pub(crate) struct Room {
    active_left: AtomicU64,
    /// The payload of the frame that is being written, in bytes; 0 if none is.
    in_flight: AtomicU64,
}

impl Room {
    /// Notes what the active segment has left.
    pub(crate) fn set_active_left(&self, bytes: u64) {
        self.active_left.store(bytes, Ordering::SeqCst);
    }

    /// Notes the payload of the frame that is about to be written; 0 once it is.
    pub(crate) fn set_in_flight(&self, payload_bytes: usize) {
        self.in_flight.store(payload_bytes as u64, Ordering::SeqCst);
    }

    /// The largest payload that the active segment has a place for, while nothing is in flight.
    #[cfg(test)]
    pub(crate) fn most_without_spare(&self) -> usize {
        let left = self.active_left.load(Ordering::SeqCst);
        usize::try_from(left - FRAME_OVERHEAD_BYTES).unwrap()
    }

    /// Whether a frame with this payload will find a place behind the one in flight, in the active
    /// segment or in a spare. The three figures are read against the order in which a rotation
    /// changes them, so that what is seen is never more than there is.
    pub(crate) fn fits(
        &self,
        payload_bytes: usize,
        capacity: u64,
        spares: impl FnOnce() -> usize,
    ) -> bool {
        let in_flight = self.in_flight.load(Ordering::SeqCst);
        let left = self.active_left.load(Ordering::SeqCst);
        let spares = spares();
        match (in_flight > 0).then(|| place(left, spares, capacity, in_flight)) {
            None => place(left, spares, capacity, payload_bytes as u64).is_some(),
            Some(None) => false,
            Some(Some((left, spares))) => {
                place(left, spares, capacity, payload_bytes as u64).is_some()
            }
        }
    }
}

/// Places one frame: in the active segment if it fits, else in a spare. Returns what is left of the
/// segment it went to, and of the spares.
fn place(left: u64, spares: usize, capacity: u64, payload_bytes: u64) -> Option<(u64, usize)> {
    let needed = payload_bytes.saturating_add(FRAME_OVERHEAD_BYTES);
    if let Some(rest) = left.checked_sub(needed) {
        return Some((rest, spares));
    }
    let spares = spares.checked_sub(1)?;
    capacity.checked_sub(needed).map(|rest| (rest, spares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_fits_iff_every_frame_before_it_does() {
        let room = Room::default();
        room.set_active_left(1_000);
        assert!(room.fits(700, 10_000, || 0), "in the active segment");
        assert!(room.fits(9_000, 10_000, || 1), "in the spare");
        assert!(!room.fits(9_000, 10_000, || 0), "there is no spare");
        assert!(!room.fits(9_900, 10_000, || 1), "in no segment at all");
        room.set_in_flight(900);
        assert!(
            !room.fits(9_000, 10_000, || 1),
            "the frame in flight takes of the spare"
        );
        assert!(room.fits(8_000, 10_000, || 1), "both fit into the spare");
        assert!(room.fits(9_000, 10_000, || 2), "each has its spare");
    }
}
