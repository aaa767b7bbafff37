//! Opening: what is on disk becomes the state that the last process had acknowledged.

use std::sync::Arc;

use highwater_core::{
    DestinationId, Effect, Incarnation, IncarnationMark, IncarnationNumber, Revision,
};
use highwater_wal::{Disk, Durable, FrameBuf, Log, LogError, LogOptions};

use crate::audit;
use crate::base::Base;
use crate::config::{Config, SPARE_SEGMENTS};
use crate::domains::Domains;
use crate::error::{OpenError, StorageError};
use crate::group::Group;
use crate::history::History;
use crate::identity;
use crate::index::{INDEX_FILE, Index, IndexSnapshot};
use crate::layer::Layer;
use crate::leases::{self, Leases};
use crate::replay::{Folded, Found, fold, wrong_frame};
use crate::shared::Parts;

/// An index that can't be read is kept under this name when a new one is made from the log.
const DAMAGED_INDEX_FILE: &str = "index.damaged";

/// What recovery hands over: the state, and the index for the checkpointer.
pub(crate) struct Recovered {
    pub(crate) parts: Parts,
    pub(crate) index: Index,
}

/// Recovers the store on a disk, or makes a new one. The order matters: the log is judged as a
/// whole before anything is changed, and only then is the index opened, which it decides about.
///
/// # Errors
///
/// [`OpenError`] with the file that is wrong.
pub(crate) fn recover(disk: Arc<dyn Disk>, config: Config) -> Result<Recovered, OpenError> {
    log_behind_index(&*disk)?;
    let destination = match identity::read(&*disk)? {
        Some(id) => id,
        None => {
            let id = DestinationId::new(random()?);
            identity::create(&*disk, id)?;
            id
        }
    };
    let mut found = Found::default();
    let mut log = open_log(&disk, &config, destination, &mut found)?;
    let (index, snapshot) = open_index(&disk, &config, &found)?;
    let applied = snapshot.as_ref().map(|index| index.applied);
    if applied.is_some_and(|applied| applied.destination != destination) {
        return Err(wrong_index("it belongs to another destination"));
    }
    let (incarnation, start) = match (applied, found.genesis()) {
        (Some(applied), _) => (
            applied.incarnation,
            Revision::start(applied.incarnation.number()),
        ),
        (None, Some((id, incarnation, start))) if id == destination => (incarnation, start),
        (None, Some(_)) => return Err(wrong_frame(None, "it belongs to another destination")),
        (None, None) if found.last.is_none() => begin(&mut log, destination, &mut found)?,
        (None, None) => {
            return Err(wrong_index(
                "it is empty, and the log doesn't reach back to the beginning",
            ));
        }
    };
    let mut domains = Domains::default();
    if snapshot.is_some() {
        for domain in index.domains().map_err(OpenError::Index)? {
            domains = domains.with(domain);
        }
    }
    let clock = snapshot.as_ref().map(|index| index.clock.clone());
    let folded = fold(
        &found,
        applied.as_ref(),
        start,
        domains,
        clock.unwrap_or_default(),
    )?;
    let history = history(&found, &config, folded.revision);
    let Folded {
        layer,
        domains,
        revision,
        log_bytes,
    } = folded;
    let base = base_over(snapshot, layer, start);
    let ids = domains.all_at(revision).map(|domain| domain.id);
    let leases = leases::find(&base, ids).map_err(OpenError::Index)?;
    let who = (destination, incarnation);
    let audit = audit::open(disk, config.audit, who, &found, (revision, &domains))?;
    let parts = Parts {
        config,
        destination,
        incarnation,
        base,
        domains,
        revision,
        log,
        log_bytes,
        history,
        leases: Leases::new(leases),
        audit,
    };
    Ok(Recovered { parts, index })
}

/// The index is made after the log, so one without any log isn't what a cut creation leaves.
/// Nothing is made in the place of what is missing.
fn log_behind_index(disk: &dyn Disk) -> Result<(), OpenError> {
    let names = disk.list().map_err(|source| OpenError::Io {
        what: "list the directory of",
        file: "the log".into(),
        source,
    })?;
    let indexed = names.iter().any(|name| name == INDEX_FILE);
    if indexed && !names.iter().any(|name| name.starts_with("log-")) {
        return Err(wrong_frame(None, "it is missing, but there is an index"));
    }
    Ok(())
}

fn base_over(index: Option<IndexSnapshot>, layer: Layer, start: Revision) -> Base {
    let applied = index.as_ref().map(|index| index.applied);
    Base {
        layers: vec![Arc::new(layer)],
        indexed: applied.map_or(start, |applied| applied.revision),
        remembers_since: applied.map_or(start, |applied| applied.remembers_since),
        index: index.map(Arc::new),
    }
}

fn wrong_index(detail: &str) -> OpenError {
    OpenError::Corrupt {
        file: INDEX_FILE.into(),
        offset: 0,
        detail: detail.into(),
    }
}

/// Random bytes of the operating system.
fn random<const N: usize>() -> Result<[u8; N], OpenError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| OpenError::Io {
        what: "draw random numbers for",
        file: identity::IDENTITY_FILE.into(),
        source: error.into(),
    })?;
    Ok(bytes)
}

fn open_log(
    disk: &Arc<dyn Disk>,
    config: &Config,
    destination: DestinationId,
    found: &mut Found,
) -> Result<Log, OpenError> {
    let mut options = LogOptions::new(destination.bytes());
    options.segment_bytes = config.segment_bytes;
    options.max_payload_bytes = config.payload_bytes_max();
    options.spare_segments = SPARE_SEGMENTS;
    options.salts = config.salts;
    let opened = Log::open(Arc::clone(disk), options, &mut *found.collect());
    match opened {
        Ok((log, recovered)) => {
            found.last = recovered.last.map(Durable::lsn);
            if let Some(torn) = &recovered.torn {
                tracing::info!(file = %torn.file, offset = torn.offset,
                    "cleared an unconfirmed frame at the end of the log");
            }
            if let Some(cut) = &recovered.cut_short {
                tracing::warn!(file = %cut.file, bytes = cut.bytes,
                    "the end of the log's last file is missing, which no crash does: \
                     acknowledged commits may be lost");
            }
            Ok(log)
        }
        Err(LogError::ReplayStopped { at }) => {
            let detail = found
                .wrong
                .take()
                .map_or_else(String::new, |(_, detail)| detail);
            Err(wrong_frame(Some(at), detail))
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens the index. One that can't be read is put aside if the log holds everything from the
/// beginning, and made anew from it: nothing is lost by that. Else it is an error.
fn open_index(
    disk: &Arc<dyn Disk>,
    config: &Config,
    found: &Found,
) -> Result<(Index, Option<IndexSnapshot>), OpenError> {
    let open = || -> Result<_, StorageError> {
        let mut index = Index::open(disk, config.index_cache_bytes)?;
        index.verify()?;
        let snapshot = index.snapshot()?;
        Ok((index, snapshot))
    };
    let error = match open() {
        Ok(opened) => return Ok(opened),
        Err(error) => error,
    };
    if found.genesis().is_none() && found.last.is_some() {
        return Err(OpenError::Index(error));
    }
    tracing::warn!(%error, "the index can't be read and is made anew from the log");
    let set_aside = disk
        .rename(INDEX_FILE, DAMAGED_INDEX_FILE)
        .and_then(|()| disk.sync_dir());
    set_aside.map_err(|source| OpenError::Io {
        what: "set aside",
        file: INDEX_FILE.into(),
        source,
    })?;
    open().map_err(OpenError::Index)
}

/// Writes the first frame of a new store.
fn begin(
    log: &mut Log,
    destination: DestinationId,
    found: &mut Found,
) -> Result<(Incarnation, Revision), OpenError> {
    let mark = IncarnationMark::new(u64::from_be_bytes(random()?));
    let incarnation = Incarnation::new(IncarnationNumber::FIRST, mark);
    let effect = Arc::new(Effect::genesis(destination, incarnation));
    let mut group = Group::new(Arc::new(Layer::default()), FrameBuf::new());
    group.encode(&effect, usize::MAX);
    let durable = log.append(&mut group.frame)?;
    found.last = Some(durable.lsn());
    found.frames.push((durable.lsn(), group.frame.len() as u64));
    found.effects.push((durable.lsn(), Arc::clone(&effect)));
    Ok((incarnation, effect.revision()))
}

/// The history that the log still holds. Of its first effect only the revision is used, since what
/// was before it is gone.
fn history(found: &Found, config: &Config, revision: Revision) -> History {
    let mut effects = found.effects.iter();
    let oldest = effects
        .next()
        .map_or(revision, |(_, effect)| effect.revision());
    let history = History::new(config.history_bytes, oldest);
    for (lsn, effect) in effects {
        history.push([Arc::clone(effect)], lsn.get());
    }
    history
}
