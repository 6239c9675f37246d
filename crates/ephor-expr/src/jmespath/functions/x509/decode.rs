//! `x509_decode`.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::certificate::X509Certificate;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::{ParsedCriAttribute, X509CriAttribute};
use x509_parser::num_bigint::BigUint;
use x509_parser::oid_registry::Oid;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;
use x509_parser::signature_algorithm::SignatureAlgorithm;
use x509_parser::time::ASN1Time;
use x509_parser::x509::{AlgorithmIdentifier, SubjectPublicKeyInfo};

use super::super::{Call, Function, Param};
use super::{extensions, names};
use crate::jmespath::EvalError;
use crate::value::{Map, Value};

pub(in crate::jmespath::functions) const FUNCTIONS: &[Function] = &[Function {
    name: "x509_decode",
    params: &[Param::STRING],
    returns: "object",
    doc: "The fields of a certificate, or of a request for one, in PEM; only RSA keys. Fields are named as in Go, for \
          example `Subject.CommonName`, `DNSNames`, `NotAfter` and `PublicKey.N`.",
    examples: &[
        ("x509_decode('x')", "error: failed to decode PEM block"),
        (
            "x509_decode(base64_decode('LS0tLS1CRUdJTiBGT08tLS0tLQpBQUFBCi0tLS0tRU5EIEZPTy0tLS0tCg=='))",
            "error: PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST",
        ),
    ],
    call: x509_decode,
}];

/// Why a text is not decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum X509Fault {
    #[error("failed to decode PEM block")]
    Pem,
    #[error("PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST")]
    Label,
    #[error("certificate should use rsa algorithm")]
    NotRsa,
    #[error("x509: malformed certificate")]
    Malformed,
}

fn x509_decode(call: &Call<'_>) -> Result<Value, EvalError> {
    let text = call.str(0);
    // The raw parts come out in base64 three times over.
    call.charge(text.len().saturating_mul(4))?;
    decode(text).map_err(|fault| EvalError::Other(fault.to_string()))
}

/// The fields of a certificate or of a request for one, in PEM.
pub(crate) fn decode(text: &str) -> Result<Value, X509Fault> {
    let (block, _) = Pem::read(Cursor::new(text)).map_err(|_| X509Fault::Pem)?;
    let fields = match block.label.as_str() {
        "CERTIFICATE" => match X509Certificate::from_der(&block.contents) {
            Ok(([], certificate)) => decode_certificate(&certificate)?,
            _ => return Err(X509Fault::Malformed),
        },
        "CERTIFICATE REQUEST" => match X509CertificationRequest::from_der(&block.contents) {
            Ok(([], request)) => decode_request(&request)?,
            _ => return Err(X509Fault::Malformed),
        },
        _ => return Err(X509Fault::Label),
    };
    Ok(Value::object(fields))
}

fn decode_certificate(certificate: &X509Certificate<'_>) -> Result<Map, X509Fault> {
    let tbs = &certificate.tbs_certificate;
    let mut fields = Map::new();
    fields.insert("Raw", bytes(certificate.as_raw()));
    fields.insert("RawTBSCertificate", bytes(tbs.as_ref()));
    fields.insert("RawSubject", bytes(tbs.subject.as_raw()));
    fields.insert("RawSubjectPublicKeyInfo", bytes(tbs.subject_pki.raw));
    fields.insert("RawIssuer", bytes(tbs.issuer.as_raw()));
    fields.insert("Signature", bytes(&certificate.signature_value.data));
    fields.insert("SignatureAlgorithm", signature_algorithm(&certificate.signature_algorithm));
    insert_public_key(&mut fields, &tbs.subject_pki)?;
    fields.insert("Version", i64::from(tbs.version.0) + 1);
    fields.insert("SerialNumber", number(&tbs.serial));
    fields.insert("Subject", names::name(&tbs.subject));
    fields.insert("Issuer", names::name(&tbs.issuer));
    fields.insert("NotBefore", time(tbs.validity.not_before));
    fields.insert("NotAfter", time(tbs.validity.not_after));
    extensions::insert_certificate_fields(&mut fields, tbs.extensions())?;
    Ok(fields)
}

fn decode_request(request: &X509CertificationRequest<'_>) -> Result<Map, X509Fault> {
    let info = &request.certification_request_info;
    let mut fields = Map::new();
    fields.insert("Raw", bytes(request.as_raw()));
    fields.insert("RawTBSCertificateRequest", bytes(info.raw));
    fields.insert("RawSubject", bytes(info.subject.as_raw()));
    fields.insert("RawSubjectPublicKeyInfo", bytes(info.subject_pki.raw));
    fields.insert("Signature", bytes(&request.signature_value.data));
    fields.insert("SignatureAlgorithm", signature_algorithm(&request.signature_algorithm));
    insert_public_key(&mut fields, &info.subject_pki)?;
    fields.insert("Version", i64::from(info.version.0));
    fields.insert("Subject", names::name(&info.subject));
    fields.insert("Attributes", list(info.iter_attributes().filter_map(attribute).collect()));
    let requested = info.iter_attributes().find_map(|a| match a.parsed_attribute() {
        ParsedCriAttribute::ExtensionRequest(request) => Some(request.extensions.as_slice()),
        _ => None,
    });
    extensions::insert_request_fields(&mut fields, requested.unwrap_or_default())?;
    Ok(fields)
}

/// An attribute of a request. Go reads only extension requests, and of a critical extension only that it is so.
fn attribute(attribute: &X509CriAttribute<'_>) -> Option<Value> {
    let ParsedCriAttribute::ExtensionRequest(request) = attribute.parsed_attribute() else { return None };
    let extensions = request.extensions.iter().map(|e| {
        let value = if e.critical { true.into() } else { bytes(e.value) };
        Value::from([("Type", oid(&e.oid)), ("Value", value)])
    });
    let values = Value::array(vec![Value::array(extensions.collect())]);
    Some(Value::from([("Type", oid(&attribute.oid)), ("Value", values)]))
}

fn insert_public_key(fields: &mut Map, info: &SubjectPublicKeyInfo<'_>) -> Result<(), X509Fault> {
    let Ok(PublicKey::RSA(key)) = info.parsed() else { return Err(X509Fault::NotRsa) };
    let exponent = key.try_exponent().ok().and_then(|e| i64::try_from(e).ok()).ok_or(X509Fault::Malformed)?;
    let modulus = BigUint::from_bytes_be(key.modulus).to_string();
    // 1 is RSA in Go's list of key algorithms.
    fields.insert("PublicKeyAlgorithm", 1);
    fields.insert("PublicKey", Value::from([("N", modulus.into()), ("E", exponent.into())]));
    Ok(())
}

/// The place of an algorithm in Go's list, 0 if it is not there.
fn signature_algorithm(algorithm: &AlgorithmIdentifier<'_>) -> Value {
    let place = match algorithm.algorithm.to_id_string().as_str() {
        "1.2.840.113549.1.1.2" => 1,
        "1.2.840.113549.1.1.4" => 2,
        "1.2.840.113549.1.1.5" | "1.3.14.3.2.29" => 3,
        "1.2.840.113549.1.1.11" => 4,
        "1.2.840.113549.1.1.12" => 5,
        "1.2.840.113549.1.1.13" => 6,
        "1.2.840.10040.4.3" => 7,
        "2.16.840.1.101.3.4.3.2" => 8,
        "1.2.840.10045.4.1" => 9,
        "1.2.840.10045.4.3.2" => 10,
        "1.2.840.10045.4.3.3" => 11,
        "1.2.840.10045.4.3.4" => 12,
        "1.2.840.113549.1.1.10" => pss_algorithm(algorithm),
        "1.3.101.112" => 16,
        _ => 0,
    };
    Value::Int(place)
}

/// RSA-PSS counts only with a salt as long as its digest.
fn pss_algorithm(algorithm: &AlgorithmIdentifier<'_>) -> i64 {
    let Ok(SignatureAlgorithm::RSASSA_PSS(params)) = SignatureAlgorithm::try_from(algorithm) else { return 0 };
    match (params.hash_algorithm_oid().to_id_string().as_str(), params.salt_length()) {
        ("2.16.840.1.101.3.4.2.1", 32) => 13,
        ("2.16.840.1.101.3.4.2.2", 48) => 14,
        ("2.16.840.1.101.3.4.2.3", 64) => 15,
        _ => 0,
    }
}

/// An integer; a large one as the nearest float, as JSON readers take it.
fn number(n: &BigUint) -> Value {
    let digits = n.to_string();
    digits.parse::<i64>().map_or_else(|_| digits.parse().map_or(Value::Null, Value::Float), Value::Int)
}

fn time(time: ASN1Time) -> Value {
    jiff::Timestamp::from_second(time.timestamp()).map_or(Value::Null, |t| t.to_string().into())
}

/// Bytes in base64.
pub(super) fn bytes(bytes: &[u8]) -> Value {
    STANDARD.encode(bytes).into()
}

/// A list as Go prints it: null when there is nothing in it.
pub(super) fn list(items: Vec<Value>) -> Value {
    if items.is_empty() { Value::Null } else { Value::array(items) }
}

/// An object identifier as a list of numbers.
pub(super) fn oid(oid: &Oid<'_>) -> Value {
    let numbers = oid.iter().into_iter().flatten().map(|n| i64::try_from(n).unwrap_or(i64::MAX).into());
    Value::array(numbers.collect())
}
