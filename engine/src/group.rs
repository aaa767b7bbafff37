//! Commits that become durable together.

use std::sync::Arc;

use highwater_core::codec::encode_effect;
use highwater_core::{DomainName, Effect, Fence, Guard, Receipt};
use highwater_wal::FrameBuf;

use crate::error::Error;
use crate::layer::Layer;
use crate::queue::Request;
use crate::ticket::{Answer, Promise};

/// The frame being filled, and the answers that wait for it to be durable. Rejections wait with the
/// rest: they were judged on what isn't durable yet.
#[derive(Debug)]
pub(crate) struct Group {
    /// Every effect behind its 32-bit length; empty if there are only rejections.
    pub(crate) frame: FrameBuf,
    /// The layer that all effects of the group were folded into.
    pub(crate) layer: Arc<Layer>,
    /// The effects, oldest first.
    pub(crate) effects: Vec<Arc<Effect>>,
    /// The answers, in the order of judgement.
    pub(crate) answers: Vec<(Promise, Answer)>,
    /// For the audit trail: the guards that each effect touched under an authority, as far as they
    /// are known from its receipt.
    pub(crate) touched: Vec<Vec<(Guard, Fence)>>,
    /// For the audit trail: which answers are refusals, and in which domain.
    pub(crate) refused: Vec<(usize, DomainName)>,
}

impl Group {
    /// An empty group.
    pub(crate) fn new(layer: Arc<Layer>, mut frame: FrameBuf) -> Self {
        frame.clear();
        Self {
            frame,
            layer,
            effects: Vec::new(),
            answers: Vec::new(),
            touched: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Whether nobody waits for it.
    pub(crate) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Notes whose authority the last effect was made under, if that is kept.
    pub(crate) fn note_touched(&mut self, receipt: &Receipt) {
        if let Some(last) = self.touched.last_mut() {
            let guards = receipt.guards.iter();
            *last = guards
                .map(|touched| (touched.guard.clone(), touched.fence.clone()))
                .collect();
        }
    }

    /// Notes that the next answer is a refusal, if it is one.
    pub(crate) fn note_refusal(&mut self, request: &Request, answer: &Answer) {
        let domain = match request {
            Request::Commit(asked) => &asked.commit.domain,
            Request::CreateDomain(create) => &create.name,
            Request::NoteClock => return,
        };
        if matches!(
            answer,
            Err(Error::Rejected(_) | Error::AuditUnavailable { .. })
        ) {
            self.refused.push((self.answers.len(), domain.clone()));
        }
    }

    /// Appends an effect to the frame, unless the frame would then exceed `max` bytes.
    pub(crate) fn encode(&mut self, effect: &Effect, max: usize) -> bool {
        let before = self.frame.len();
        self.frame.extend_with(|out| put_effect(effect, out));
        let fits = self.frame.len() <= max;
        if !fits {
            self.frame.truncate(before);
        }
        fits
    }
}

/// An effect behind its length.
fn put_effect(effect: &Effect, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    encode_effect(effect, out);
    let bytes = out.len().saturating_sub(at).saturating_sub(4);
    let length = u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    if let Some(place) = out.get_mut(at..at.saturating_add(4)) {
        place.copy_from_slice(&length);
    }
}

/// The encoded effects of a frame, oldest first; `None` in place of one whose length is wrong.
pub(crate) fn effects_in(mut payload: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        if payload.is_empty() {
            return None;
        }
        let split = payload.split_first_chunk::<4>().and_then(|(length, rest)| {
            let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            rest.split_at_checked(length)
        });
        match split {
            Some((effect, rest)) => {
                payload = rest;
                Some(Some(effect))
            }
            None => {
                payload = &[];
                Some(None)
            }
        }
    })
}
