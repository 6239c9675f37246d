//! A signed Service. Keys and signatures are made with openssl; the private keys are gone.

use ephor_expr::Value;
use ephor_expr::value::decode;
use ephor_expr::yaml::parse_value;

use super::super::{ManifestCheck, ManifestOutcome, ManifestProblem};

/// Anna's public key.
pub(super) const ANNA: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEtKA+jcIdFm06sGKf8yN3ZgV+2T+y
ytZFE6dB1bcVeKJovbuGRNl0aUWRQvwGYIr6Npe5IQjKrT8m6WQ8KAtduw==
-----END PUBLIC KEY-----";

/// Bert's public key.
pub(super) const BERT: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEgm3xa6w3PLFHtfwAZDzsCwJCtuUu
W5wm3EgAnsX8TPr7GYPtdP+DLK7M9nlq2iimmym4xuvOliNHovvtPOx1bQ==
-----END PUBLIC KEY-----";

/// A key on another curve.
pub(super) const P384: &str = "\
-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEC3LVV0Pp1HI7sLVqcmtDKIpgxalQULUY
bJnc+/z8ws9HrwBP92iJeD/ZrqM+TivWJWpGFYXLVxiP3ncTZ1SPahPmaqPf9hV/
ryWBBAn4sYT70SuH1DHJiEKCuZi/hzjO
-----END PUBLIC KEY-----";

/// The Service, as gzip and base64.
pub(super) const MESSAGE: &str = "H4sIAAAAAAAAAy2MQQrDMAwE736FPhBIb0XXfqCQ0rtwBDW1LSEJvz9OyG12Bpa0fNm8SEcYj/QvfUfY2EbJnBoH7RSECaBTYwT/\
    iSZXzqdSsfATlgsRnusc05uEZKkIn9d7GufKOcTwqqR6/xzUuaWafAAAAA==";
pub(super) const BY_ANNA: &str =
    "MEQCIG1I4Tv4HPL32Wg1GABLXjVLaMfVeEkUO7PrroiZ6ZIVAiAz6LxBjsxeJf7lTJTnaKWLfeaIOXatlzi/sievgQ065A==";
pub(super) const BY_BERT: &str =
    "MEUCIDVv11JAyd/RnqurD93xpRMjlIJ32jHFeW0iAd2Zfgg9AiEAy/fqpyUFdT2DpfJ7oJyZh7deioeh+Tt33mZPYCiClO8=";

/// The Service in a tar archive.
pub(super) const ARCHIVE: &str = "H4sIAAAAAAAAA5Pv5mAAA+a35x25DhkItCZet3XVW7BFS+tmFaNjoXzWgaTbnJ46FdXJouKxL1Z1fKif7XmvReXymbxlK9UXn5p8\
    tejm9ZSIz0l/39l+TorTuSY8tf/32uXZHceWP9/r8afkXXS9xZ35BuusouS1Mre+6noTtFV97bdr5aGZm4+5FRtdfOGz8ppJ2OoC\
    sems6afdnxw5/iHC5/fSsNk2uUHvVL00t4a1v9VTPXhtW8+j0vum5/a++/n1DQMy+HD+3ddHT64waDAwAACq9T3IywAAAA==";
pub(super) const ARCHIVE_BY_ANNA: &str =
    "MEYCIQCNjRguV9YMidS3i6KXbHx6YdFhUEVTH7aZzsWkhlUeRAIhAJoEJsxqf5JYdsLG+tzabD+DNhnzMIbOiDnkisj5iZ1P";

/// The Service as it is signed, with these annotations.
pub(super) fn service(annotations: &[(&str, &str)]) -> Value {
    service_of("cosign.sigstore.dev", annotations)
}

/// The Service as it is signed, with these annotations of `domain`.
pub(super) fn service_of(domain: &str, annotations: &[(&str, &str)]) -> Value {
    let annotations: Vec<String> =
        annotations.iter().map(|(key, value)| format!("{domain}/{key}: '{value}'")).collect();
    let text = format!(
        "apiVersion: v1\nkind: Service\nspec:\n  ports:\n  - {{port: 80, protocol: TCP}}\n  selector: {{app: shop}}\n\
         metadata: {{name: shop, annotations: {{{}}}}}\n",
        annotations.join(", ")
    );
    parse_value(&text).unwrap()
}

pub(super) fn signed_by_anna() -> Value {
    service(&[("message", MESSAGE), ("signature", BY_ANNA)])
}

pub(super) fn signed_by_both() -> Value {
    service(&[("message", MESSAGE), ("signature", BY_ANNA), ("signature_1", BY_BERT)])
}

/// The object with `value` (YAML) at `place`.
pub(super) fn with(mut object: Value, place: &[&str], value: &str) -> Value {
    let value = parse_value(value).unwrap();
    let mut at = &mut object;
    for key in place {
        at = match key.parse::<usize>() {
            Ok(index) => &mut at.as_array_mut().unwrap()[index],
            Err(_) => at.as_object_mut().unwrap().entry(key),
        };
    }
    *at = value;
    object
}

/// An attestor entry of the given PEM blocks, as YAML in flow style.
pub(super) fn keys(pems: &[&str]) -> String {
    format!("{{keys: {{publicKeys: {:?}}}}}", pems.join("\n"))
}

pub(super) fn compile(body: &str) -> Result<ManifestCheck, Vec<ManifestProblem>> {
    ManifestCheck::compile(&decode(&parse_value(body).unwrap()).unwrap())
}

/// The problems of a body as `path: message`.
pub(super) fn problems(body: &str) -> Vec<String> {
    compile(body).unwrap_err().iter().map(|p| format!("{}: {}", p.path, p.fault)).collect()
}

/// What a body with these attestors says of an object.
pub(super) fn judge(attestors: &str, object: &Value) -> ManifestOutcome {
    judge_with(&format!("{{attestors: {attestors}}}"), object)
}

pub(super) fn judge_with(body: &str, object: &Value) -> ManifestOutcome {
    compile(body).unwrap_or_else(|problems| panic!("{problems:?}")).evaluate(object)
}

pub(super) fn failure(outcome: ManifestOutcome) -> String {
    match outcome {
        ManifestOutcome::Fail { message } => message.to_string(),
        ManifestOutcome::Pass { message } => panic!("expected a failure, found: {message}"),
    }
}

pub(super) fn passes(outcome: &ManifestOutcome) -> bool {
    matches!(outcome, ManifestOutcome::Pass { .. })
}
