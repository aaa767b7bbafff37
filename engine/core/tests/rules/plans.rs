//! The oracle's opinion on intents: that of the whole store's model, and how large a record is.

use std::collections::BTreeSet;

use crate::oracle::{Model, Refusal, refusal};
use crate::raw::{Auth, Bytes, Request};

#[path = "../shared/plans.rs"]
#[expect(unreachable_pub, reason = "the tests of the whole store share it")]
mod shared;

pub(crate) use shared::*;

impl From<Obstacle> for Refusal {
    fn from(obstacle: Obstacle) -> Self {
        Self {
            intent: Some(obstacle.id),
            about: obstacle.about,
            ..refusal(obstacle.code)
        }
    }
}

impl Model {
    /// Whether an intent's record would be above 256 KiB, counted as the format writes it.
    pub(crate) fn overfull_intent(
        &self,
        request: &Request,
        touched: &BTreeSet<Bytes>,
    ) -> Option<Refusal> {
        let (id, ..) = request.intent.as_ref()?;
        let (next, _) = self.accepted(request, touched);
        let plan = &next.intents[id].told;
        let fence = |auth: &Auth| 26 + auth.holder.len();
        let binding = plan.binding.as_ref().map_or(0, |(task, auth)| {
            let names = 2 + 1 + 2 + 2 * usize::from(task.configuration.is_some());
            names + bytes(task) + 11 * task.inputs.len() + fence(auth)
        });
        let step = |s: &Statement| {
            let guard = |(guard, now, before): &(Bytes, Auth, Option<Auth>)| {
                2 + guard.len() + fence(now) + 1 + before.as_ref().map_or(0, fence)
            };
            let guards: usize = s.guards.iter().map(guard).sum();
            let inputs: usize = s.inputs.iter().map(|i| 2 + i.0.len() + 8).sum();
            let writes: usize = s.writes.iter().map(|w| 2 + w.0.len() + 24).sum();
            32 + 26 + 2 + "d".len() + 8 + 1 + 16 + guards + inputs + writes
        };
        let owner = plan
            .owner
            .as_ref()
            .map_or(0, |(name, _)| 2 + name.len() + 8);
        let steps: usize = plan.steps.iter().map(step).sum();
        let size = 1 + owner + 1 + binding + 8 + 2 + steps;
        (size > 256 * 1024).then(|| Refusal {
            intent: Some(id.clone()),
            about: Some(size.to_string()),
            ..refusal("IntentExhausted")
        })
    }
}
