//! Proof of the decision core: an independent model in raw numbers, every small world, the order of
//! the steps, the ends of the counters, the codec, and random histories.

// Marked as tests so that the lint exceptions for tests reach the helpers too.
#[cfg(test)]
mod briefs;
mod codec;
#[cfg(test)]
mod counters;
#[cfg(test)]
mod exhaustive;
#[cfg(test)]
mod footprint;
#[cfg(test)]
mod generate;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod guards;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod intents;
#[cfg(test)]
mod intents_kept;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod lease_clock;
#[cfg(test)]
mod lease_digest;
#[cfg(test)]
mod lease_oracle;
#[cfg(test)]
mod lease_twin;
#[cfg(test)]
mod lease_worlds;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod leases_kept;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod order;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod raw;
#[cfg(test)]
mod reachable;
#[cfg(test)]
mod reads;
#[cfg(test)]
mod text;
#[cfg(test)]
mod twin;
