//! Generates the messages and stubs from the `.proto` files, without an installed `protoc`.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

const FILES: [&str; 4] = [
    "highwater/v1/types.proto",
    "highwater/v1/domain.proto",
    "highwater/v1/rejection.proto",
    "highwater/v1/highwater.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(
        out.join("highwater_descriptor.bin"),
        descriptors.encode_to_vec(),
    )?;
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
