//! Messages from whoever made the object.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::super::message::{MessageError, manifests, signed_bytes};
use super::fixtures::{ANNA, ARCHIVE, BY_ANNA, MESSAGE, failure, judge, keys, service};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn archive() -> Vec<u8> {
    let tar_gz = signed_bytes(ARCHIVE).unwrap();
    let mut tar = Vec::new();
    std::io::Read::read_to_end(&mut flate2::bufread::GzDecoder::new(tar_gz.as_slice()), &mut tar).unwrap();
    tar
}

#[test]
fn bombs_are_refused_at_each_step() {
    let zeros = vec![b' '; 5 << 20];
    assert_eq!(signed_bytes(&STANDARD.encode(gzip(&zeros))), Err(MessageError::TooLarge));
    assert_eq!(manifests(gzip(&zeros)), Err(MessageError::TooLarge));
    assert_eq!(signed_bytes(&"A".repeat(300 << 10)), Err(MessageError::TooLarge));
    let mut aliases = vec!["a: &a [x,x,x,x,x,x,x,x]".to_owned()];
    for (before, name) in ('a'..'h').zip('b'..='h') {
        let uses = vec![format!("*{before}"); 8].join(",");
        aliases.push(format!("{name}: &{name} [{uses}]"));
    }
    assert_eq!(manifests(aliases.join("\n").into_bytes()), Err(MessageError::Yaml));
}

#[test]
fn broken_messages_are_named() {
    let mut truncated = gzip(b"a: 1");
    truncated.truncate(12);
    assert_eq!(signed_bytes("***"), Err(MessageError::Base64));
    assert_eq!(signed_bytes(&STANDARD.encode(&truncated)), Err(MessageError::Gzip));
    assert_eq!(manifests(b"a: [".to_vec()), Err(MessageError::Yaml));
    assert_eq!(manifests(vec![0xff, 0xfe]), Err(MessageError::Yaml));

    let mut tar = archive();
    assert_eq!(manifests(tar.clone()).map(|found| found.len()), Ok(1));
    tar[124..136].copy_from_slice(b"77777777777\0");
    assert_eq!(manifests(tar.clone()), Err(MessageError::Tar));
    tar[124..136].copy_from_slice(b"not octal!!\0");
    assert_eq!(manifests(tar), Err(MessageError::Tar));

    let set = format!("[{{entries: [{}]}}]", keys(&[ANNA]));
    let text = failure(judge(&set, &service(&[("message", "***"), ("signature", BY_ANNA)])));
    assert!(text.ends_with("the annotation `cosign.sigstore.dev/message` cannot be read: it is no base64"), "{text}");
    let text = failure(judge(&set, &service(&[("message", MESSAGE), ("signature", "AAAA")])));
    assert!(text.ends_with("failed to verify signature."), "{text}");
}

#[test]
fn a_message_without_gzip_is_taken_as_it_is() {
    assert_eq!(signed_bytes(&STANDARD.encode("a: 1")), Ok(b"a: 1".to_vec()));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2000), flips in proptest::collection::vec((0usize..2048, any::<u8>()), 0..8)) {
        let _ = manifests(bytes.clone());
        let _ = manifests(gzip(&bytes));
        let mut tar = archive();
        for (at, byte) in flips {
            if let Some(place) = tar.get_mut(at) {
                *place = byte;
            }
        }
        let _ = manifests(tar);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _ = signed_bytes(&text);
    }
}
