//! What the writers of a guard were told, in raw numbers, and whether a state agrees with it.

/// What became of one attempt to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Acknowledged at this revision.
    Accepted(u64),
    /// Refused, or never sent.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// One attempt to write both keys of a guard.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// The sequence that was presented.
    pub(crate) sequence: u64,
    /// The value of both keys; `None` deletes them.
    pub(crate) value: Option<String>,
    /// What became of it.
    pub(crate) outcome: Outcome,
}

/// What is stored under a guard: a value with its generation under both keys, or nothing.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct State {
    /// The value and its generation.
    pub(crate) value: Option<(String, u64)>,
    /// The sequence of the fence; 0 where there is none.
    pub(crate) fence: u64,
}

/// One guard: its state when the process began, and what was attempted since.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ledger {
    /// The state that was read at the beginning.
    pub(crate) before: State,
    /// The attempts since then.
    pub(crate) attempts: Vec<Attempt>,
}

impl Ledger {
    /// The highest sequence that is known to be accepted.
    pub(crate) fn acknowledged(&self) -> u64 {
        let accepted = self.accepted().map(|(_, attempt)| attempt.sequence);
        accepted.max().unwrap_or(0).max(self.before.fence)
    }

    fn accepted(&self) -> impl Iterator<Item = (u64, &Attempt)> {
        self.attempts
            .iter()
            .filter_map(|attempt| match attempt.outcome {
                Outcome::Accepted(revision) => Some((revision, attempt)),
                Outcome::Refused | Outcome::Unknown => None,
            })
    }

    fn unknown(&self) -> impl Iterator<Item = &Attempt> {
        let is_unknown = |attempt: &&Attempt| attempt.outcome == Outcome::Unknown;
        self.attempts.iter().filter(is_unknown)
    }

    /// Whether the state is that after all that was acknowledged, and perhaps some of what is
    /// unknown; says what is wrong if not.
    pub(crate) fn agrees(&self, now: &State) -> Result<(), String> {
        let highest = self.unknown().map(|attempt| attempt.sequence).max();
        let highest = highest.unwrap_or(0).max(self.acknowledged());
        if now.fence < self.acknowledged() || now.fence > highest {
            let acknowledged = self.acknowledged();
            let fence = now.fence;
            return Err(format!(
                "the fence is {fence}, not {acknowledged} to {highest}"
            ));
        }
        let last = self.accepted().max_by_key(|(revision, _)| *revision);
        let told = match last {
            Some((revision, attempt)) => attempt.value.as_ref().map(|value| (value, revision)),
            None => {
                let before = self.before.value.as_ref();
                before.map(|(value, generation)| (value, *generation))
            }
        };
        let found = now.value.as_ref().map(|(value, at)| (value, *at));
        if found == told {
            return Ok(());
        }
        let floor = last.map_or(0, |(revision, _)| revision);
        let is_cause = |attempt: &&Attempt| {
            attempt.value.as_ref() == found.map(|(value, _)| value)
                && attempt.sequence <= now.fence
                && found.is_none_or(|(_, generation)| generation > floor)
        };
        match self.unknown().find(is_cause) {
            Some(_) => Ok(()),
            None => Err(format!("told {told:?}, found {found:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(sequence: u64, value: Option<&str>, outcome: Outcome) -> Attempt {
        let value = value.map(str::to_owned);
        Attempt {
            sequence,
            value,
            outcome,
        }
    }

    fn state(value: Option<(&str, u64)>, fence: u64) -> State {
        let value = value.map(|(value, generation)| (value.to_owned(), generation));
        State { value, fence }
    }

    #[test]
    fn what_was_told_must_be_found_and_nothing_else() {
        let ledger = Ledger {
            before: state(Some(("z", 3)), 1),
            attempts: vec![
                attempt(2, Some("a"), Outcome::Accepted(5)),
                attempt(1, Some("late"), Outcome::Refused),
                attempt(3, Some("b"), Outcome::Accepted(7)),
                attempt(4, Some("c"), Outcome::Unknown),
            ],
        };
        for right in [state(Some(("b", 7)), 3), state(Some(("c", 8)), 4)] {
            assert_eq!(ledger.agrees(&right), Ok(()));
        }
        for wrong in [
            state(Some(("a", 5)), 3),
            state(Some(("z", 3)), 3),
            state(None, 3),
            state(Some(("b", 6)), 3),
            state(Some(("b", 7)), 2),
            state(Some(("b", 7)), 5),
            state(Some(("late", 9)), 3),
            state(Some(("c", 7)), 4),
            state(Some(("c", 8)), 3),
        ] {
            assert!(ledger.agrees(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_deletion_is_a_state_like_any_other() {
        let mut ledger = Ledger {
            before: state(Some(("z", 3)), 1),
            attempts: vec![attempt(1, None, Outcome::Unknown)],
        };
        assert_eq!(ledger.agrees(&state(Some(("z", 3)), 1)), Ok(()));
        assert_eq!(ledger.agrees(&state(None, 1)), Ok(()));
        ledger.attempts[0].outcome = Outcome::Refused;
        assert!(ledger.agrees(&state(None, 1)).is_err());
        ledger.attempts[0].outcome = Outcome::Accepted(4);
        assert!(ledger.agrees(&state(Some(("z", 3)), 1)).is_err());
    }
}
