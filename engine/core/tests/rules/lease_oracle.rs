//! A second opinion on leases: what the contract says of them, written down naively over raw
//! numbers. Every end of a lease is worked out when it is known, and moved at an opening; nothing
//! is computed from a list of openings.

use std::collections::BTreeMap;

/// What somebody asks for. An authority is a sequence of the current epoch and a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Guard, holder, time to live, seal, supersede.
    Acquire(&'static str, &'static str, u64, bool, bool),
    /// Guard, lease, authority, time to live.
    Renew(&'static str, u64, Claim, Option<u64>),
    Release(&'static str, u64, Claim),
    /// Guard, lease, who.
    Revoke(&'static str, Option<u64>, &'static str),
    Expire(&'static str, u64),
    /// A key under the guard.
    Write(&'static str, Claim),
}

pub(crate) type Claim = (u64, &'static str);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) id: u64,
    pub(crate) epoch: usize,
    pub(crate) claim: Claim,
    pub(crate) ttl: u64,
    pub(crate) renewed_at: u64,
    /// When it lapses.
    pub(crate) ends: u64,
    /// An opening has lengthened it, or was too late to.
    pub(crate) reopened: bool,
}

/// How a lease ended, and until when only its holder may acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) held: Held,
    pub(crate) cause: String,
    pub(crate) at: u64,
    pub(crate) clock: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) fence: Option<Claim>,
    /// Every term ever issued in the current epoch, oldest first.
    pub(crate) issued: Vec<Claim>,
    pub(crate) held: Option<Held>,
    pub(crate) ended: Option<Ended>,
    /// The period in which only the last holder may acquire, if its lease lapsed: when it began,
    /// until when, and whether an opening has moved it.
    pub(crate) delay: Option<(u64, u64, bool)>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) issued: bool,
    pub(crate) strict: bool,
    pub(crate) grace: u64,
    pub(crate) step: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Court {
    pub(crate) terms: Terms,
    pub(crate) revision: u64,
    pub(crate) epoch: usize,
    pub(crate) now: u64,
    pub(crate) noted: u64,
    pub(crate) sides: BTreeMap<&'static str, Side>,
}

/// What is answered: the refusal's code, milliseconds or cause; or the sequence of a lease, how it
/// ended, how the one before it ended.
pub(crate) type Answer = Result<Option<(u64, String, String)>, (&'static str, u64, String)>;

fn no(code: &'static str) -> Answer {
    Err((code, 0, String::new()))
}

impl Court {
    pub(crate) fn side(&self, guard: &str) -> Side {
        self.sides.get(guard).cloned().unwrap_or_default()
    }

    /// How the lease that hasn't ended stands: "live", "lapsed", "retired" or "none".
    fn standing(&self, side: &Side) -> &'static str {
        match &side.held {
            None => "none",
            Some(held) if held.epoch != self.epoch => "retired",
            Some(held) if self.now < held.ends => "live",
            Some(_) => "lapsed",
        }
    }

    /// Answers, and changes what is there if it says yes.
    pub(crate) fn ask(&mut self, ask: &Ask) -> Answer {
        let mut next = self.clone();
        next.revision += 1;
        let answer = match ask {
            Ask::Acquire(guard, holder, ttl, seal, supersede) => {
                next.acquire(guard, holder, *ttl, (*seal, *supersede))
            }
            Ask::Renew(guard, lease, claim, ttl) => next.renew(guard, *lease, *claim, *ttl),
            Ask::Release(guard, lease, claim) => {
                next.end(guard, Some(*lease), Some(*claim), "released")
            }
            Ask::Revoke(guard, lease, by) => {
                let cause = format!("revoked by '{by}'");
                next.end(guard, *lease, None, &cause)
            }
            Ask::Expire(guard, lease) => next.expire(guard, *lease),
            Ask::Write(guard, claim) => next.write(guard, *claim),
        };
        if answer.is_ok() {
            *self = next;
        }
        answer
    }

    fn acquire(
        &mut self,
        guard: &'static str,
        holder: &'static str,
        ttl: u64,
        (seal, supersede): (bool, bool),
    ) -> Answer {
        let mut side = self.side(guard);
        let issued = side.issued.iter().map(|claim| claim.0);
        let highest = issued.chain(side.fence.map(|fence| fence.0)).max();
        let highest = highest.unwrap_or(0);
        let full = highest == u64::MAX - 1;
        let sequence = if full { highest } else { highest + 1 };
        if let (Some(fence), Some(step), false) = (side.fence, self.terms.step, seal)
            && sequence - fence.0 > step
        {
            return no("SequenceJump");
        }
        let standing = self.standing(&side);
        if standing == "live" {
            let held = side.held.as_ref().unwrap();
            if !(supersede && held.claim.1 == holder) {
                return Err(("LeaseHeld", held.ends - self.now, String::new()));
            }
        }
        let (last, delay) = self.last_lapse(&side, standing);
        if let (Some(last), Some((_, until, _))) = (last, delay)
            && last != holder
            && self.now < until
        {
            return Err(("LeaseDelayed", until - self.now, String::new()));
        }
        if full {
            return no("SequenceExhausted");
        }
        let replaced = match standing {
            "live" => "superseded by its own holder",
            "lapsed" => "expired",
            "retired" => "ended with its epoch",
            _ => "",
        };
        if !replaced.is_empty() {
            self.close(&mut side, replaced);
        }
        side.issued.push((sequence, holder));
        side.delay = None;
        side.held = Some(Held {
            id: self.revision,
            epoch: self.epoch,
            claim: (sequence, holder),
            ttl,
            renewed_at: self.revision,
            ends: self.now + ttl,
            reopened: false,
        });
        if seal {
            side.fence = Some((sequence, holder));
        }
        self.noted = self.now;
        self.sides.insert(guard, side);
        Ok(Some((sequence, String::new(), replaced.into())))
    }

    /// Whose lease lapsed last, and the period after that.
    fn last_lapse(
        &self,
        side: &Side,
        standing: &str,
    ) -> (Option<&'static str>, Option<(u64, u64, bool)>) {
        let lapsed = side.held.as_ref().filter(|_| standing == "lapsed");
        if let Some(held) = lapsed {
            let fresh = (held.ends, held.ends + self.terms.grace, false);
            return (Some(held.claim.1), Some(side.delay.unwrap_or(fresh)));
        }
        let ended = side.ended.as_ref();
        let ended = ended.filter(|end| end.cause == "expired" && standing == "none");
        (ended.map(|end| end.held.claim.1), side.delay)
    }

    /// Ends the lease of a side; one that lapsed ended then.
    fn close(&self, side: &mut Side, cause: &str) {
        let held = side.held.take().unwrap();
        let expired = cause == "expired";
        let clock = if expired { held.ends } else { self.now };
        if expired && side.delay.is_none() {
            side.delay = Some((held.ends, held.ends + self.terms.grace, false));
        }
        if !expired {
            side.delay = None;
        }
        side.ended = Some(Ended {
            held,
            cause: cause.into(),
            at: self.revision,
            clock,
        });
    }

    fn renew(&mut self, guard: &'static str, id: u64, claim: Claim, ttl: Option<u64>) -> Answer {
        let mut side = self.side(guard);
        if let Some(refusal) = self.below(&side, claim) {
            return no(refusal);
        }
        if let Some(refusal) = self.not_live(&side, Some(id), Some(claim)) {
            return Err(refusal);
        }
        let held = side.held.as_mut().unwrap();
        held.ttl = ttl.unwrap_or(held.ttl);
        held.ends = self.now + held.ttl;
        held.reopened = false;
        held.renewed_at = self.revision;
        self.noted = self.now;
        self.sides.insert(guard, side);
        Ok(Some((claim.0, String::new(), String::new())))
    }

    fn end(
        &mut self,
        guard: &'static str,
        id: Option<u64>,
        claim: Option<Claim>,
        cause: &str,
    ) -> Answer {
        let mut side = self.side(guard);
        if let Some(refusal) = self.not_live(&side, id, claim) {
            return Err(refusal);
        }
        let sequence = side.held.as_ref().unwrap().claim.0;
        self.close(&mut side, cause);
        self.noted = self.now;
        self.sides.insert(guard, side);
        Ok(Some((sequence, cause.into(), String::new())))
    }

    fn expire(&mut self, guard: &'static str, id: u64) -> Answer {
        let mut side = self.side(guard);
        let named = side.held.as_ref().filter(|held| held.id == id).cloned();
        match (self.standing(&side), named) {
            ("live", Some(held)) => Err(("LeaseHeld", held.ends - self.now, String::new())),
            ("lapsed", Some(held)) => {
                self.close(&mut side, "expired");
                self.noted = self.noted.max(held.ends);
                self.sides.insert(guard, side);
                Ok(Some((held.claim.0, "expired".into(), String::new())))
            }
            _ => Err(self.not_live(&side, Some(id), None).unwrap()),
        }
    }

    /// Why a lease isn't the live one.
    fn not_live(
        &self,
        side: &Side,
        id: Option<u64>,
        claim: Option<Claim>,
    ) -> Option<(&'static str, u64, String)> {
        let gone = |cause: &str| Some(("LeaseGone", 0, cause.to_owned()));
        let meant = side
            .held
            .as_ref()
            .filter(|held| id.is_none_or(|id| id == held.id));
        match (self.standing(side), meant) {
            ("live", Some(held)) => match claim {
                Some(claim) if claim != held.claim => gone(""),
                _ => None,
            },
            ("lapsed", Some(_)) => gone("expired"),
            ("retired", Some(_)) => gone("ended with its epoch"),
            _ => match &side.ended {
                Some(end) if id.is_none_or(|id| id == end.held.id) => gone(&end.cause),
                _ => gone(""),
            },
        }
    }

    fn below(&self, side: &Side, claim: Claim) -> Option<&'static str> {
        let fence = side.fence?;
        if claim.0 < fence.0 {
            return Some("StaleTerm");
        }
        if claim.0 == fence.0 && claim.1 != fence.1 {
            return Some("HolderConflict");
        }
        let jumps = self.terms.step.is_some_and(|step| claim.0 - fence.0 > step);
        jumps.then_some("SequenceJump")
    }

    fn write(&mut self, guard: &'static str, claim: Claim) -> Answer {
        if let Some(refusal) = self.unfit(guard, claim) {
            return Err(refusal);
        }
        let mut side = self.side(guard);
        side.fence = Some(claim);
        self.sides.insert(guard, side);
        Ok(None)
    }

    /// Why nothing can be written or read under this claim.
    pub(crate) fn unfit(&self, guard: &str, claim: Claim) -> Option<(&'static str, u64, String)> {
        let side = self.side(guard);
        let plain = |code| Some((code, 0, String::new()));
        let below = self.below(&side, claim);
        if let Some(code @ ("StaleTerm" | "HolderConflict")) = below {
            return plain(code);
        }
        let known = side.issued.iter().rev().take(8).any(|one| *one == claim);
        if self.terms.issued && !known && side.fence != Some(claim) {
            return plain("UnknownTerm");
        }
        if let Some(code) = below {
            return plain(code);
        }
        let mine = side
            .held
            .as_ref()
            .filter(|held| held.claim == claim && held.epoch == self.epoch);
        if !self.terms.strict || mine.is_some_and(|held| self.now < held.ends) {
            return None;
        }
        let last = side.ended.as_ref();
        let last = last.filter(|end| end.held.claim == claim && end.held.epoch == self.epoch);
        let cause = match mine {
            Some(_) => "expired".to_owned(),
            None => last.map_or_else(String::new, |end| end.cause.clone()),
        };
        Some(("NotLeased", 0, cause))
    }

    pub(crate) fn note(&mut self) {
        self.revision += 1;
        self.noted = self.now;
    }

    /// The store closes, and opens again: time goes on from what was noted, a millisecond later.
    pub(crate) fn reopen(&mut self) {
        self.revision += 1;
        let before = self.noted;
        self.now = before + 1;
        self.noted = self.now;
        let (opening, grace) = (self.now, self.terms.grace);
        for side in self.sides.values_mut() {
            if let Some(held) = &mut side.held {
                if before < held.ends {
                    if !held.reopened {
                        held.ends = opening + held.ttl;
                        held.reopened = true;
                    }
                    continue;
                }
                side.delay
                    .get_or_insert((held.ends, held.ends + grace, false));
            }
            if let Some((began, until, moved @ false)) = &mut side.delay
                && *began < opening
            {
                // A period that is over stays over.
                if before < *until {
                    *until = opening + grace;
                }
                *moved = true;
            }
        }
    }

    pub(crate) fn new_epoch(&mut self) {
        self.epoch += 1;
        for side in self.sides.values_mut() {
            side.fence = None;
            side.issued.clear();
        }
    }
}
