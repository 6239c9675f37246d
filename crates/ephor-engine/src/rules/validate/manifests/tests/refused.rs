//! Bodies that cannot be compiled.

use super::super::{KeyError, PublicKey};
use super::fixtures::{ANNA, BERT, P384, keys, problems};

#[test]
fn what_needs_a_network_is_refused_by_name() {
    let anna = keys(&[ANNA]);
    for (body, expected) in [
        (
            format!("{{repository: ghcr.io/x, attestors: [{{entries: [{anna}]}}]}}"),
            "repository: `repository` is not supported for manifests: only public keys written in the policy are",
        ),
        (
            format!("{{dryRun: {{enable: true}}, attestors: [{{entries: [{anna}]}}]}}"),
            "dryRun.enable: `dryRun.enable` is not supported: manifests are compared without a cluster",
        ),
        (
            "{attestors: [{entries: [{keyless: {subject: a}}]}]}".to_owned(),
            "attestors[0].entries[0].keyless: `keyless` is not supported for manifests: only public keys written in \
             the policy are",
        ),
        (
            "{attestors: [{entries: [{certificates: {cert: a}}]}]}".to_owned(),
            "attestors[0].entries[0].certificates: `certificates` is not supported for manifests: only public keys \
             written in the policy are",
        ),
        (
            "{attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]}".to_owned(),
            "attestors[0].entries[0].keys.kms: `kms` is not supported for manifests: only public keys written in the \
             policy are",
        ),
        (
            "{attestors: [{entries: [{keys: {publicKeys: 'k8s://ns/name'}}]}]}".to_owned(),
            "attestors[0].entries[0].keys.publicKeys: references to keys (`k8s://`, `awskms://` and so on) are not \
             supported: write the PEM block itself",
        ),
    ] {
        assert_eq!(problems(&body), [expected], "{body}");
    }
}

#[test]
fn sets_that_nobody_can_satisfy_are_refused() {
    let (anna, both) = (keys(&[ANNA]), keys(&[ANNA, BERT]));
    for (body, expected) in [
        ("{}".to_owned(), ": `manifests` needs `attestors`"),
        ("{attestors: [{entries: []}]}".to_owned(), "attestors[0]: a set of attestors needs `entries`"),
        (
            "{attestors: [{entries: [{}]}]}".to_owned(),
            "attestors[0].entries[0]: an attestor needs `keys` or `attestor`",
        ),
        (
            format!("{{attestors: [{{count: 3, entries: [{both}]}}]}}"),
            "attestors[0].count: `count` is 3, but there are 2 attestors to count",
        ),
        (
            format!("{{attestors: [{{count: -1, entries: [{anna}]}}]}}"),
            "attestors[0].count: `count` is -1, but there are 1 attestors to count",
        ),
    ] {
        assert_eq!(problems(&body), [expected], "{body}");
    }
    let deep = (0..20).fold(anna, |inner, _| format!("{{attestor: {{entries: [{inner}]}}}}"));
    let found = problems(&format!("{{attestors: [{{entries: [{deep}]}}]}}"));
    assert!(matches!(found.as_slice(), [one] if one.ends_with("sets of attestors nest too deep")), "{found:?}");
}

#[test]
fn keys_are_pem_blocks_of_ecdsa_p256() {
    let two = format!("# ours\n{ANNA}\n\n  {}\n", BERT.replace('\n', "\n  "));
    assert_eq!(PublicKey::parse_all(&two).map(|found| found.len()), Ok(2));
    for (text, expected) in [
        ("", KeyError::NoPem),
        ("-----BEGIN PUBLIC KEY-----\nMFkw", KeyError::BrokenPem),
        ("-----BEGIN PUBLIC KEY-----\n***\n-----END PUBLIC KEY-----", KeyError::BrokenPem),
        ("-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----", KeyError::OtherKind),
        ("-----BEGIN PGP PUBLIC KEY BLOCK-----", KeyError::Pgp),
        ("k8s://ns/key", KeyError::Reference),
        (P384, KeyError::OtherKind),
    ] {
        assert_eq!(PublicKey::parse_all(text), Err(expected), "{text}");
    }
}

#[test]
fn another_digest_is_refused() {
    let entry = keys(&[ANNA]).replacen("publicKeys", "signatureAlgorithm: sha512, publicKeys", 1);
    assert_eq!(
        problems(&format!("{{attestors: [{{entries: [{entry}]}}]}}")),
        ["attestors[0].entries[0].keys.signatureAlgorithm: signature algorithm `sha512` is not supported: manifests \
          are signed over SHA-256"]
    );
}
