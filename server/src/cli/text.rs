//! What people read.

use comfy_table::{Cell, Table, presets};
use highwater::{
    Admission, Domain, DomainState, Fence, Generation, Guard, GuardRule, HolderBinding, Key,
    Policy, Receipt, Record, Terms, escape,
};
use highwater_proto::v1;

use super::lease_form;

/// Longest value that stands in a table, in characters; the rest is cut off.
const CELL_CHARS_MAX: usize = 48;

/// Whether a character could forge a line, or the order of one, on a terminal.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Bytes for a terminal: as they are where they are harmless text, else escaped.
pub(crate) fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(is_unsafe) => text.into(),
        _ => escape(bytes),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(CELL_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into(),
    }
}

/// An empty table.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// A table of names and values.
pub(crate) fn facts(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = rows
        .iter()
        .map(|(name, value)| format!("{name:width$}  {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// What a policy's admission is called.
pub(crate) const fn admission(policy: &Policy) -> &'static str {
    match policy.admission() {
        Admission::Fenced => "fenced",
        Admission::Versioned => "versioned",
        Admission::Open => "open",
    }
}

/// What a policy's binding of holders is called.
pub(crate) const fn binding(policy: &Policy) -> &'static str {
    match policy.holder_binding() {
        HolderBinding::None => "none",
        HolderBinding::Prefix => "prefix",
        HolderBinding::Exact => "exact",
    }
}

/// What a policy's terms are called.
pub(crate) const fn terms(policy: &Policy) -> &'static str {
    match policy.terms() {
        Terms::External => "external",
        Terms::Issued => "issued",
    }
}

/// What a domain's state is called.
pub(crate) const fn state(domain: &Domain) -> &'static str {
    match domain.state {
        DomainState::Active => "active",
        DomainState::Frozen => "frozen",
        DomainState::RecoveryRequired => "recovery_required",
    }
}

/// What a destination's availability is called.
pub(crate) fn availability(wire: &v1::StatusResponse) -> &'static str {
    match wire.availability() {
        v1::Availability::Unspecified => "unspecified",
        v1::Availability::Ready => "ready",
        v1::Availability::Poisoned => "poisoned",
        v1::Availability::Overloaded => "overloaded",
        v1::Availability::DiskFull => "disk_full",
        v1::Availability::RecoveryRequired => "recovery_required",
    }
}

fn guard_rule(policy: &Policy) -> String {
    match policy.guard() {
        GuardRule::Key => "key".into(),
        GuardRule::Domain => "domain".into(),
        GuardRule::Prefix { delimiter, depth } => {
            format!("prefix({}, {depth})", escape(&[delimiter]))
        }
    }
}

/// A generation; 0 is "does not exist".
pub(crate) fn generation(generation: Option<Generation>) -> u64 {
    generation.map_or(0, Generation::get)
}

/// An accepted commit in a few lines.
pub(crate) fn accepted(receipt: &Receipt, dry_run: bool) -> String {
    let verdict = if dry_run && !receipt.replayed {
        "would be accepted"
    } else {
        "accepted"
    };
    let again = if receipt.replayed {
        ", which is told again"
    } else {
        ""
    };
    let mut lines = vec![format!("{verdict} at revision {}{again}", receipt.revision)];
    if let Some(step) = &receipt.intent {
        lines.push(format!("intent {}: step {}", step.id, step.step));
    }
    for write in &receipt.writes {
        let (now, before) = (generation(write.generation), generation(write.previous));
        lines.push(format!(
            "key {}: generation {now}, before {before}",
            write.key
        ));
    }
    for guard in &receipt.guards {
        let before = guard.previous.as_ref();
        let before = before.map_or("no fence".into(), ToString::to_string);
        lines.push(format!(
            "guard {}: fence {}, before {before}",
            guard.guard, guard.fence
        ));
    }
    lines.extend(receipt.leases.iter().map(lease_form::receipt_line));
    lines.join("\n")
}

/// One record in full.
pub(crate) fn record(key: &Key, record: &Record) -> String {
    let under = record.written_under.map(|term| term.to_string());
    let labels = record.metadata.labels().iter();
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{}={}", shown(name.as_bytes()), shown(value.as_bytes())))
        .collect();
    facts(&[
        ("key", key.to_string()),
        ("generation", record.generation.to_string()),
        ("metageneration", record.metageneration.to_string()),
        ("changed at", record.changed_at.to_string()),
        ("written under", under.unwrap_or_else(|| "-".into())),
        (
            "content type",
            record
                .metadata
                .content_type()
                .map_or("-".into(), |text| shown(text.as_bytes())),
        ),
        (
            "labels",
            if labels.is_empty() {
                "-".into()
            } else {
                labels.join(" ")
            },
        ),
        ("value", shown(record.value.as_bytes())),
    ])
}

/// A page of records.
pub(crate) fn records(records: &[(Key, Record)]) -> String {
    let mut table = table(&["KEY", "GENERATION", "WRITTEN UNDER", "BYTES", "VALUE"]);
    for (key, record) in records {
        let under = record.written_under.map(|term| term.to_string());
        let bytes = record.value.as_bytes();
        table.add_row([
            Cell::new(key),
            Cell::new(record.generation),
            Cell::new(under.unwrap_or_else(|| "-".into())),
            Cell::new(bytes.len()),
            Cell::new(cut(&shown(bytes))),
        ]);
    }
    table.trim_fmt()
}

/// Domains in a table.
pub(crate) fn domains(domains: &[Domain]) -> String {
    let mut table = table(&["NAME", "EPOCH", "GUARD", "ADMISSION", "STATE"]);
    for domain in domains {
        table.add_row([
            Cell::new(&domain.name),
            Cell::new(domain.epochs.current().epoch),
            Cell::new(guard_rule(&domain.policy)),
            Cell::new(admission(&domain.policy)),
            Cell::new(state(domain)),
        ]);
    }
    table.trim_fmt()
}

/// One domain in full.
pub(crate) fn domain(domain: &Domain) -> String {
    let policy = &domain.policy;
    let step = policy.max_sequence_step();
    let retired = domain.epochs.retired().iter();
    let retired: Vec<String> = retired.map(|entry| entry.epoch.to_string()).collect();
    facts(&[
        ("domain", domain.name.to_string()),
        ("epoch", domain.epochs.current().epoch.to_string()),
        ("state", state(domain).into()),
        ("guard", guard_rule(policy)),
        ("admission", admission(policy).into()),
        ("holder binding", binding(policy).into()),
        ("terms", terms(policy).into()),
        ("strict", if policy.strict() { "yes" } else { "no" }.into()),
        ("grace", format!("{} ms", policy.grace_ms())),
        (
            "max sequence step",
            step.map_or("unlimited".into(), |step| step.to_string()),
        ),
        (
            "retired epochs",
            if retired.is_empty() {
                "-".into()
            } else {
                retired.join(" ")
            },
        ),
        ("created at", domain.created_at.to_string()),
    ])
}

/// A guard and its fence.
pub(crate) fn fence(guard: &Guard, fence: Option<&Fence>, epoch: &str) -> String {
    match fence {
        Some(fence) => format!("guard {guard}: fence {fence}"),
        None => format!("guard {guard}: no fence in epoch {epoch}"),
    }
}

/// What a destination says about itself.
pub(crate) fn status(destination: &str, incarnation: &str, wire: &v1::StatusResponse) -> String {
    let mut rows = vec![
        ("destination", destination.into()),
        ("incarnation", incarnation.into()),
        ("revision", wire.revision.to_string()),
        ("availability", availability(wire).into()),
        ("domains", wire.domains.to_string()),
        ("longest value", format!("{} bytes", wire.value_bytes_max)),
        ("server version", shown(wire.server_version.as_bytes())),
    ];
    let mut counters: Vec<_> = wire.counters.iter().collect();
    counters.sort();
    let mut rejections: Vec<_> = wire.rejections.iter().collect();
    rejections.sort();
    let total: u64 = rejections.iter().map(|(_, count)| **count).sum();
    rows.push(("rejections", total.to_string()));
    let named = rejections.into_iter().chain(counters);
    let named = named.map(|(name, count)| (name.as_str(), count.to_string()));
    rows.extend(named);
    facts(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stored_can_forge_a_line_on_a_terminal() {
        for text in [
            "a\nb",
            "a\rb",
            "a\u{1b}[2Jb",
            "a\u{2028}b",
            "a\u{202e}b",
            "a\0b",
        ] {
            let line = shown(text.as_bytes());
            assert!(line.bytes().all(|byte| byte.is_ascii_graphic()), "{line}");
            assert_eq!(highwater::unescape(&line).unwrap(), text.as_bytes());
        }
        assert_eq!(shown("grün, 100 %".as_bytes()), "grün, 100 %");
        assert_eq!(shown(&[0xff, b'a']), "%ffa");
    }

    #[test]
    fn long_values_are_cut_at_whole_characters() {
        assert_eq!(cut(&"ü".repeat(48)), "ü".repeat(48));
        assert_eq!(cut(&"ü".repeat(49)), format!("{}…", "ü".repeat(48)));
    }
}
