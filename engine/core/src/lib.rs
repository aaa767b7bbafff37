//! The decision core of Highwater: every rule of fencing, as pure functions over plain data.
