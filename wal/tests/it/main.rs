//! The log on a simulated disk that loses power, tears writes, runs full and rots; and on the
//! disk of the operating system.

#[cfg(test)]
mod append;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod format;
#[cfg(test)]
mod os;
#[cfg(test)]
mod sim;
#[cfg(test)]
mod space;
#[cfg(test)]
mod support;
#[cfg(test)]
mod verdict;
