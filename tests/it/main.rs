//! The one integration binary: each rung of the ladder, and each check of the repository, is a
//! module of it.

#[cfg(test)]
mod audit;
#[cfg(test)]
mod compat;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod generate;
#[cfg(test)]
mod intents;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod model;
#[cfg(test)]
mod pipeline;
#[cfg(test)]
mod prefixes;
#[cfg(test)]
mod reconcile;
#[cfg(test)]
mod scripts;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tidy;
