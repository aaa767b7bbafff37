//! A workload whose every payload is known beforehand, and the judgement of what is recovered.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_wal::{FrameBuf, Log, LogError, LogOptions, Lsn, Recovered, SaltSource};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::sim::{Op, SimDisk};

pub(crate) const SEGMENT_BYTES: usize = 64 * 1024;
pub(crate) const LOG_ID: [u8; 16] = *b"the log of tests";

/// Payload lengths in turn: around the alignment, the sector and the block, and big ones that
/// fill a segment soon.
const LENGTHS: [usize; 13] = [
    0, 1, 7, 8, 9, 480, 513, 4096, 20_000, 40_000, 100, 33_000, 5000,
];

pub(crate) fn options() -> LogOptions {
    let mut options = LogOptions::new(LOG_ID);
    options.segment_bytes = SEGMENT_BYTES as u64;
    options.max_payload_bytes = 40_000;
    options.salts = SaltSource::Seeded(7);
    options
}

/// What frame `lsn` carries if it is written in the run with this number.
pub(crate) fn payload(lsn: u64, run: u64) -> Vec<u8> {
    let len = LENGTHS[usize::try_from(lsn).unwrap() % LENGTHS.len()];
    let mut rng = StdRng::seed_from_u64(lsn * 1000 + run);
    (0..len).map(|_| rng.random()).collect()
}

/// What the outside knows about a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// Confirmed frames.
    pub(crate) acked: BTreeMap<u64, Vec<u8>>,
    /// The frame whose append gave no answer.
    pub(crate) in_flight: Option<(u64, Vec<u8>)>,
    /// Frames up to here were given up.
    pub(crate) recycled: u64,
}

/// What was found on a disk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) frames: Vec<(u64, Vec<u8>)>,
    pub(crate) recovered: Recovered,
}

/// Opens the log and collects its frames.
pub(crate) fn open(disk: &SimDisk) -> Result<(Log, Found), LogError> {
    let mut frames = Vec::new();
    let (log, recovered) = Log::open(Arc::new(disk.clone()), options(), &mut |lsn, payload| {
        frames.push((lsn.get(), payload.to_vec()));
        Ok(())
    })?;
    Ok((log, Found { frames, recovered }))
}

/// Appends one payload.
pub(crate) fn append(log: &mut Log, payload: &[u8]) -> Result<u64, LogError> {
    let mut frame = FrameBuf::new();
    frame.extend_from_slice(payload);
    let result = log.append(&mut frame);
    assert_eq!(frame.payload(), payload, "the payload stays as it was");
    result.map(|durable| durable.lsn().get())
}

impl Trace {
    /// Opens the log and checks it; what was in flight is known from then on.
    pub(crate) fn open(&mut self, disk: &SimDisk) -> Result<Log, LogError> {
        let (log, found) = open(disk)?;
        self.check(&found);
        if let Some((lsn, payload)) = self.in_flight.take()
            && found.frames.last().is_some_and(|(last, _)| *last == lsn)
        {
            self.acked.insert(lsn, payload);
        }
        Ok(log)
    }

    /// Appends the next `count` frames.
    pub(crate) fn append(&mut self, log: &mut Log, count: u64, run: u64) -> Result<(), LogError> {
        for _ in 0..count {
            let lsn = self.last() + 1;
            let payload = payload(lsn, run);
            self.in_flight = Some((lsn, payload.clone()));
            let given = append(log, &payload)?;
            assert_eq!(given, lsn);
            self.acked.insert(lsn, payload);
            self.in_flight = None;
        }
        Ok(())
    }

    pub(crate) fn recycle(&mut self, log: &mut Log, lsn: u64) -> Result<(), LogError> {
        self.recycled = lsn;
        log.recycle_through(Lsn::from_raw(lsn).unwrap())
    }

    pub(crate) fn last(&self) -> u64 {
        self.acked.keys().next_back().copied().unwrap_or(0)
    }

    /// Frames are found iff they were confirmed and not given up, but for the one in flight, which
    /// may be there, and the given up ones that still share a segment with others.
    pub(crate) fn check(&self, found: &Found) {
        let mut expected = self.acked.clone();
        let last = found
            .recovered
            .last
            .map_or(0, |durable| durable.lsn().get());
        if let Some((lsn, payload)) = &self.in_flight
            && last == *lsn
        {
            expected.insert(*lsn, payload.clone());
        }
        assert_eq!(last, expected.keys().next_back().copied().unwrap_or(0));
        let first = found.frames.first().map_or(last + 1, |(lsn, _)| *lsn);
        assert!(
            first <= self.recycled + 1,
            "frame {first} is first, {} are gone",
            self.recycled
        );
        let expected: Vec<_> = expected
            .into_iter()
            .filter(|(lsn, _)| *lsn >= first)
            .collect();
        assert!(
            found.frames == expected,
            "not the frames that were confirmed"
        );
        assert_eq!(found.recovered.frames, found.frames.len() as u64);
        assert_eq!(
            found.recovered.first.map(Lsn::get),
            found.frames.first().map(|(lsn, _)| *lsn)
        );
    }

    /// Creation, rotations with and without a ready spare, recycling, closing, opening again.
    pub(crate) fn script(&mut self, disk: &SimDisk, run: u64) -> Result<(), LogError> {
        let mut log = self.open(disk)?;
        self.append(&mut log, 8, run)?;
        log.ensure_spare()?;
        self.append(&mut log, 5, run)?;
        let half = self.last() - 4;
        self.recycle(&mut log, half)?;
        self.append(&mut log, 5, run)?;
        log.close()?;
        let mut log = self.open(disk)?;
        self.append(&mut log, 6, run)?;
        let all = self.last();
        self.recycle(&mut log, all)?;
        self.append(&mut log, 3, run)
    }
}

/// A closed log in several segments, its trace, and its files.
pub(crate) fn closed_log() -> (Trace, BTreeMap<String, Vec<u8>>) {
    let disk = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&disk).unwrap();
    trace.append(&mut log, 12, 0).unwrap();
    log.close().unwrap();
    (trace, disk.files())
}

/// As [`closed_log`], but the process was killed before it closed the log.
pub(crate) fn killed_log(frames: u64) -> (Trace, BTreeMap<String, Vec<u8>>) {
    let disk = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&disk).unwrap();
    trace.append(&mut log, frames, 0).unwrap();
    (trace, disk.files())
}

/// The file of the segment with this number.
pub(crate) fn segment(number: u64) -> String {
    format!("log-{number:016x}.hw")
}

/// How many of the operations are of this kind.
pub(crate) fn count(ops: &[(Op, String)], op: Op) -> usize {
    ops.iter().filter(|(done, _)| *done == op).count()
}
