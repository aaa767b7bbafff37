//! The one integration binary: each rung of the ladder, and each check of the repository, is a
//! module of it.

#[cfg(test)]
mod tidy;
