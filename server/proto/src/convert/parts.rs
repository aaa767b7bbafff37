//! The names of the parts of a request, as they stand in a malformed one's evidence.
//!
//! The core names parts by static text. A client that rebuilds the evidence from the wire finds the
//! text in this list; a name that it doesn't know (of a newer destination) becomes [`OTHER`].
//! The list holds what the core, these conversions and the server say.

macro_rules! parts {
    ($($name:ident = $text:literal;)*) => {
        $(
            #[doc = concat!("The part called \"", $text, "\".")]
            pub const $name: &str = $text;
        )*

        /// The names that are known here.
        pub const ALL: &[&str] = &[$($text),*];
    };
}

parts! {
    ADMISSION = "admission";
    AUTHORITY = "authority";
    CALLER = "identity";
    CAUSE = "cause of an end";
    CODE = "code";
    COMMIT = "commit";
    CONDITION = "condition";
    CONDITIONS = "conditions";
    CONFIGURATION = "configuration";
    DELIMITER = "delimiter";
    DEPTH = "guard depth";
    DESTINATION = "destination";
    DESTINATION_ID = "destination id";
    DIGEST = "digest";
    DOMAIN = "domain";
    DOMAIN_ID = "domain id";
    DOMAIN_NAME = "domain name";
    DOMAIN_STATE = "domain state";
    EFFECTS = "effects";
    ENDING = "ending";
    EPOCH = "epoch";
    EPOCH_MARK = "epoch mark";
    EPOCH_NUMBER = "epoch number";
    FENCE = "fence";
    FILTER = "filter";
    GENERATION = "generation";
    GRANTS = "grants";
    GUARD = "guard";
    GUARDS = "guards";
    GUARD_RULE = "guard rule";
    HOLDER = "holder";
    HOLDER_BINDING = "holder binding";
    INCARNATION = "incarnation";
    INCARNATION_MARK = "incarnation mark";
    INCARNATION_NUMBER = "incarnation number";
    INPUT = "input";
    INPUTS = "inputs";
    INPUT_NAME = "name of an input";
    INTENT = "intent";
    INTENT_MUTATIONS = "mutations of intents";
    INTENTS = "intents";
    INTENT_STATE = "state of an intent";
    KEY = "key";
    KEYS = "keys";
    LEASE = "lease";
    LEASE_MUTATIONS = "mutations of leases";
    MALFORMED = "malformed part";
    METAGENERATION = "metageneration";
    MUTATION = "mutation";
    MUTATIONS = "mutations";
    OBSERVED = "observation";
    OWNER = "owner";
    PAGE_TOKEN = "page token";
    POLICY = "policy";
    PAGE = "page";
    PREFIX = "prefix";
    RANGE = "range";
    RECEIPT = "receipt";
    RECORD = "record";
    REVIEW = "time of review";
    REVISION = "revision";
    SEAL = "seal";
    SEQUENCE = "sequence";
    STANDING = "standing of a lease";
    STEP = "step";
    STRICT = "strict";
    TARGET = "target";
    TERM = "term";
    TERMS = "terms";
    TTL = "time to live";
    VALUE = "value";
    VERDICT = "verdict";
    WATCH = "watch event";
    WORK = "work";
}

/// What a part is called whose name isn't known here.
pub const OTHER: &str = "part of the request";

/// The static text of a part's name.
#[must_use]
pub fn known(name: &str) -> &'static str {
    ALL.iter()
        .find(|known| **known == name)
        .copied()
        .unwrap_or(OTHER)
}
