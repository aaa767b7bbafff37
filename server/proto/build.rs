//! Generates the messages and stubs from the `.proto` files, without an installed `protoc`, and
//! what the codec has to know of the requests that it looks into before it decodes them.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use prost::Message;
use prost_types::field_descriptor_proto::Label;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};

const FILES: [&str; 4] = [
    "highwater/v1/types.proto",
    "highwater/v1/domain.proto",
    "highwater/v1/rejection.proto",
    "highwater/v1/highwater.proto",
];

/// The requests that ask for an effect or carry an authority: a field that the server doesn't know
/// could be a condition, so they are refused where they have one.
const CHECKED: [&str; 8] = [
    "AdvanceFenceRequest",
    "CommitRequest",
    "CommitStreamRequest",
    "CreateDomainRequest",
    "GetRequest",
    "JudgeRequest",
    "ScanRequest",
    "TakeOverRequest",
];

/// Every message by its full name, with the dot that the names of types begin with.
type Messages<'a> = BTreeMap<String, &'a DescriptorProto>;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(
        out.join("highwater_descriptor.bin"),
        descriptors.encode_to_vec(),
    )?;
    std::fs::write(out.join("shapes.rs"), shapes(&descriptors)?)?;
    tonic_prost_build::configure()
        .bytes(".highwater.v1")
        .btree_map(".highwater.v1")
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
        .build_transport(false)
        .codec_path("crate::codec::BoundedCodec")
        .compile_fds(descriptors)?;
    Ok(())
}

/// The shape of every message that a checked request can hold, as constants in Rust.
fn shapes(descriptors: &FileDescriptorSet) -> Result<String, Box<dyn Error>> {
    let mut messages = Messages::new();
    for file in &descriptors.file {
        collect(
            &format!(".{}", file.package()),
            &file.message_type,
            &mut messages,
        );
    }
    let mut written = BTreeMap::new();
    for name in CHECKED {
        write(
            &format!(".highwater.v1.{name}"),
            &messages,
            &mut Vec::new(),
            &mut written,
        )?;
    }
    Ok(written.into_values().collect())
}

fn collect<'a>(scope: &str, found: &'a [DescriptorProto], messages: &mut Messages<'a>) {
    for message in found {
        let name = format!("{scope}.{}", message.name());
        collect(&name, &message.nested_type, messages);
        messages.insert(name, message);
    }
}

/// Writes the shape of a message and of all that is in it, each once. A message that can hold
/// itself would let a request decide how deep the look into it goes: refused.
fn write(
    name: &str,
    messages: &Messages<'_>,
    above: &mut Vec<String>,
    written: &mut BTreeMap<String, String>,
) -> Result<(), Box<dyn Error>> {
    if above.iter().any(|outer| outer == name) {
        return Err(format!("{name} can hold itself").into());
    }
    if written.contains_key(name) {
        return Ok(());
    }
    let message = messages
        .get(name)
        .ok_or_else(|| format!("no message {name}"))?;
    above.push(name.into());
    let mut fields = BTreeMap::new();
    for field in &message.field {
        if messages.contains_key(field.type_name()) {
            write(field.type_name(), messages, above, written)?;
        }
        fields.insert(field.number(), kind(field, messages));
    }
    above.pop();
    let last = fields.keys().next_back().copied().unwrap_or(0);
    let listed = (0..=last).map(|number| match fields.remove(&number) {
        Some(kind) => format!("{kind},"),
        None => "Field::Unknown,".into(),
    });
    let (constant, listed) = (constant(name), listed.collect::<String>());
    let full = name.trim_start_matches('.');
    let text = format!(
        "pub(crate) static {constant}: Shape = Shape {{ name: {full:?}, fields: &[{listed}] }};\n"
    );
    written.insert(name.into(), text);
    Ok(())
}

fn kind(field: &FieldDescriptorProto, messages: &Messages<'_>) -> String {
    if messages.contains_key(field.type_name()) {
        format!("Field::Message(&{})", constant(field.type_name()))
    } else if field.label() == Label::Repeated {
        "Field::Item".into()
    } else {
        "Field::Plain".into()
    }
}

/// `.highwater.v1.GetRequest` as `GET_REQUEST`.
fn constant(name: &str) -> String {
    let mut constant = String::new();
    for character in name.trim_start_matches(".highwater.v1.").chars() {
        if character.is_ascii_uppercase() && !constant.is_empty() {
            constant.push('_');
        }
        constant.push(if character == '.' {
            '_'
        } else {
            character.to_ascii_uppercase()
        });
    }
    constant
}
