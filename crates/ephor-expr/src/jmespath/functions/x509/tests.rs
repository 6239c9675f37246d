//! Decoded certificates, compared with what the reference decodes.

use crate::jmespath::{Expression, FixedRuntime};
use crate::value::Value;

/// A certificate with one extension of every kind that has fields.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIFATCCBGqgAwIBAgIKEjRWeJCrze8SNDANBgkqhkiG9w0BAQsFADCByzELMAkG
A1UEBhMCUEwxEDAOBgNVBAgMB01hem92aWExDzANBgNVBAcMBldhcnNhdzEUMBIG
A1UECgwLRXhhbXBsZSBPcmcxDzANBgNVBAsMBlVuaXQgQTEPMA0GA1UECwwGVW5p
dCBCMRQwEgYDVQQDDAtleGFtcGxlLm9yZzEcMBoGCSqGSIb3DQEJARYNYUBleGFt
cGxlLm9yZzELMAkGA1UEBRMCNzcxDzANBgNVBAkMBk1haW4gMTEPMA0GA1UEEQwG
MDAtMDAxMB4XDTI2MTEyMTA2NTU1MFoXDTM2MTExODA2NTU1MFowgcsxCzAJBgNV
BAYTAlBMMRAwDgYDVQQIDAdNYXpvdmlhMQ8wDQYDVQQHDAZXYXJzYXcxFDASBgNV
BAoMC0V4YW1wbGUgT3JnMQ8wDQYDVQQLDAZVbml0IEExDzANBgNVBAsMBlVuaXQg
QjEUMBIGA1UEAwwLZXhhbXBsZS5vcmcxHDAaBgkqhkiG9w0BCQEWDWFAZXhhbXBs
ZS5vcmcxCzAJBgNVBAUTAjc3MQ8wDQYDVQQJDAZNYWluIDExDzANBgNVBBEMBjAw
LTAwMTCBnzANBgkqhkiG9w0BAQEFAAOBjQAwgYkCgYEAxr38t/ZEo1PneNI/LVXF
/XuLLAMB4rllrdS71qKoHW29OlR35C6bcJ8ZtZKdDrdJiOh9ZH38mUAKEBHj5lJ9
QDCEtGUO25wFatI1SZKOmCbIRPrmREZsiI+HGKGBoNf6QVnxZkTNOz6yV6vGHayJ
aflenmx/PHmtUnR9ttApSbkCAwEAAaOCAegwggHkMBIGA1UdEwEB/wQIMAYBAf8C
AQIwDgYDVR0PAQH/BAQDAgGmMC0GA1UdJQQmMCQGCCsGAQUFBwMBBggrBgEFBQcD
AgYIKwYBBQUHAwMGBCoDBAUwWwYDVR0RBFQwUoILZXhhbXBsZS5vcmeCDSouZXhh
bXBsZS5vcmeHBAoAAAGHECABDbgAAAAAAAAAAAAAAAGBDXhAZXhhbXBsZS5vcmeG
DXNwaWZmZTovL3RkL3gwHQYDVR0OBBYEFODht9Py6/sdjcFjCEpZOCQLm6CzMF0G
CCsGAQUFBwEBBFEwTzAjBggrBgEFBQcwAYYXaHR0cDovL29jc3AuZXhhbXBsZS5v
cmcwKAYIKwYBBQUHMAKGHGh0dHA6Ly9jYS5leGFtcGxlLm9yZy9jYS5jcnQwLQYD
VR0fBCYwJDAioCCgHoYcaHR0cDovL2NybC5leGFtcGxlLm9yZy8xLmNybDAYBgNV
HSAEETAPMAUGAyoDBDAGBgRVHSAAMFsGA1UdHgEB/wRRME+gLDAOggwuZXhhbXBs
ZS5vcmcwCocICgAAAP8AAAAwDoYMLmV4YW1wbGUub3JnoR8wEYEPYmFkQGV4YW1w
bGUub3JnMAqCCGV2aWwub3JnMA4GBCoDBGMBAf8EAwwBeDANBgkqhkiG9w0BAQsF
AAOBgQCBSBPpDTaUWcPhXxwf0LxQ9RGZFOGGHtcU+MQIk8TqFIbXy6S1txRNB23e
C9f7I+UTBPBTZv0Bm38t8iUaOu5R+C9CccsYG/bGfPmchx4OldjaH9rI73VmdpEI
fryitgxs11bgfwq1aAq39jExBSMXgX9rPv5USeMqO+BxCyhtMA==
-----END CERTIFICATE-----
";

/// The request that it answers.
const REQUEST: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIICXTCCAcYCAQAwgcsxCzAJBgNVBAYTAlBMMRAwDgYDVQQIDAdNYXpvdmlhMQ8w
DQYDVQQHDAZXYXJzYXcxFDASBgNVBAoMC0V4YW1wbGUgT3JnMQ8wDQYDVQQLDAZV
bml0IEExDzANBgNVBAsMBlVuaXQgQjEUMBIGA1UEAwwLZXhhbXBsZS5vcmcxHDAa
BgkqhkiG9w0BCQEWDWFAZXhhbXBsZS5vcmcxCzAJBgNVBAUTAjc3MQ8wDQYDVQQJ
DAZNYWluIDExDzANBgNVBBEMBjAwLTAwMTCBnzANBgkqhkiG9w0BAQEFAAOBjQAw
gYkCgYEAxr38t/ZEo1PneNI/LVXF/XuLLAMB4rllrdS71qKoHW29OlR35C6bcJ8Z
tZKdDrdJiOh9ZH38mUAKEBHj5lJ9QDCEtGUO25wFatI1SZKOmCbIRPrmREZsiI+H
GKGBoNf6QVnxZkTNOz6yV6vGHayJaflenmx/PHmtUnR9ttApSbkCAwEAAaBRME8G
CSqGSIb3DQEJDjFCMEAwPgYDVR0RBDcwNYIPY3NyLmV4YW1wbGUub3JnhwQKAAAB
gQ14QGV4YW1wbGUub3Jnhg1zcGlmZmU6Ly90ZC94MA0GCSqGSIb3DQEBCwUAA4GB
AKVoGiSroe3uCKcXOtsNsy/sol3o3PcI0dGsiQicEv1R5VDrgNJxAUD+SkSFjoF+
jzw0Zrw2hpA6/6bp7wWuJm64nUPU1CND4IDzjF6yDW7i48+Ne0nZVC7Wx1qsKd0J
x/Zkxwp1rYYYz7FSR+fLDegCoStTY3FzbWaUkvSrk6Cl
-----END CERTIFICATE REQUEST-----
";

/// A certificate for a key on an elliptic curve.
const ELLIPTIC: &str = "-----BEGIN CERTIFICATE-----
MIICkzCCAjkCFHEiVy9KL4gSx4n49oo2xelP+8a3MAoGCCqGSM49BAMCMIHLMQsw
CQYDVQQGEwJQTDEQMA4GA1UECAwHTWF6b3ZpYTEPMA0GA1UEBwwGV2Fyc2F3MRQw
EgYDVQQKDAtFeGFtcGxlIE9yZzEPMA0GA1UECwwGVW5pdCBBMQ8wDQYDVQQLDAZV
bml0IEIxFDASBgNVBAMMC2V4YW1wbGUub3JnMRwwGgYJKoZIhvcNAQkBFg1hQGV4
YW1wbGUub3JnMQswCQYDVQQFEwI3NzEPMA0GA1UECQwGTWFpbiAxMQ8wDQYDVQQR
DAYwMC0wMDEwHhcNMjYxMTIxMDY1NTUwWhcNMjYxMjAxMDY1NTUwWjCByzELMAkG
A1UEBhMCUEwxEDAOBgNVBAgMB01hem92aWExDzANBgNVBAcMBldhcnNhdzEUMBIG
A1UECgwLRXhhbXBsZSBPcmcxDzANBgNVBAsMBlVuaXQgQTEPMA0GA1UECwwGVW5p
dCBCMRQwEgYDVQQDDAtleGFtcGxlLm9yZzEcMBoGCSqGSIb3DQEJARYNYUBleGFt
cGxlLm9yZzELMAkGA1UEBRMCNzcxDzANBgNVBAkMBk1haW4gMTEPMA0GA1UEEQwG
MDAtMDAxMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEvKQvPF404sWPupb6N0yf
GX5uSO/PY8vzUAjd9vvwyymA2iBiSUGKW8JB/VGSMDgFNieRTYvopngR/xpu5+X/
HDAKBggqhkjOPQQDAgNIADBFAiAilD/jq0kjT4rd5jHD/RWOIJwysGxAxuhkNY7M
xaGDwwIhAI3EKl32BKBxIAZCgu4E9VyiFlFuz/igEGuJzDWuT/gN
-----END CERTIFICATE-----
";

fn evaluate(expression: &str, pem: &str) -> Result<Value, String> {
    let document = Value::from([("pem", pem.into())]);
    let expression = Expression::compile(expression).unwrap();
    expression.evaluate(&document, &FixedRuntime::default()).map_err(|e| e.to_string())
}

/// Checks the fields of `decoded` that are in `want`, and that there are `count` in all.
fn check_fields(decoded: &Value, want: &str, count: usize) {
    let want = Value::from_json(want).unwrap();
    for (field, want) in want.as_object().unwrap().iter() {
        assert_eq!(decoded.get(field), Some(want), "{field}");
    }
    assert_eq!(decoded.as_object().unwrap().len(), count);
}

#[test]
fn certificates_have_the_fields_of_go() {
    let decoded = evaluate("x509_decode(pem)", CERTIFICATE).unwrap();
    check_fields(
        &decoded,
        r#"{"AuthorityKeyId":null,"BasicConstraintsValid":true,
    "CRLDistributionPoints":["http://crl.example.org/1.crl"],"DNSNames":["example.org","*.example.org"],
    "EmailAddresses":["x@example.org"],"ExcludedDNSDomains":["evil.org"],
    "ExcludedEmailAddresses":["bad@example.org"],"ExcludedIPRanges":null,"ExcludedURIDomains":null,
    "ExtKeyUsage":[1,2,3],"ExtraExtensions":null,"IPAddresses":["10.0.0.1","2001:db8::1"],
    "InhibitAnyPolicy":0,"InhibitAnyPolicyZero":false,"InhibitPolicyMapping":0,
    "InhibitPolicyMappingZero":false,"IsCA":true,
    "IssuingCertificateURL":["http://ca.example.org/ca.crt"],"KeyUsage":101,"MaxPathLen":2,
    "MaxPathLenZero":false,"OCSPServer":["http://ocsp.example.org"],
    "PermittedDNSDomains":[".example.org"],"PermittedDNSDomainsCritical":true,
    "PermittedEmailAddresses":null,"PermittedIPRanges":[{"IP":"10.0.0.0","Mask":"/wAAAA=="}],
    "PermittedURIDomains":[".example.org"],"Policies":["1.2.3.4","2.5.29.32.0"],
    "PolicyIdentifiers":[[1,2,3,4],[2,5,29,32,0]],"PolicyMappings":null,"PublicKeyAlgorithm":1,
    "RequireExplicitPolicy":0,"RequireExplicitPolicyZero":false,"SerialNumber":8.596805827263855e+22,
    "SignatureAlgorithm":4,"SubjectKeyId":"4OG30/Lr+x2NwWMISlk4JAuboLM=",
    "URIs":[{"ForceQuery":false,"Fragment":"","Host":"td","OmitHost":false,"Opaque":"","Path":"/x",
    "RawFragment":"","RawPath":"","RawQuery":"","Scheme":"spiffe","User":null}],
    "UnhandledCriticalExtensions":[[1,2,3,4,99]],"UnknownExtKeyUsage":[[1,2,3,4,5]],"Version":3}"#,
        52,
    );
}

#[test]
fn requests_have_the_fields_of_go() {
    let decoded = evaluate("x509_decode(pem)", REQUEST).unwrap();
    check_fields(
        &decoded,
        r#"{"DNSNames":["csr.example.org"],"EmailAddresses":["x@example.org"],"ExtraExtensions":null,
    "IPAddresses":["10.0.0.1"],"PublicKeyAlgorithm":1,"SignatureAlgorithm":4,
    "URIs":[{"ForceQuery":false,"Fragment":"","Host":"td","OmitHost":false,"Opaque":"","Path":"/x",
    "RawFragment":"","RawPath":"","RawQuery":"","Scheme":"spiffe","User":null}],"Version":0}"#,
        17,
    );
    assert_eq!(
        decoded.get("Attributes").unwrap().to_json(),
        r#"[{"Type":[1,2,840,113549,1,9,14],"Value":[[{"Type":[2,5,29,17],"Value":"MDWCD2Nzci5leGFtcGxlLm9yZ4cECgAAAYENeEBleGFtcGxlLm9yZ4YNc3BpZmZlOi8vdGQveA=="}]]}]"#
    );
}

#[test]
fn names_are_sorted_by_meaning_and_kept_in_order() {
    let subject = evaluate("x509_decode(pem).Subject", CERTIFICATE).unwrap();
    check_fields(
        &subject,
        r#"{"CommonName":"example.org","Country":["PL"],"ExtraNames":null,"Locality":["Warsaw"],
    "Names":[{"Type":[2,5,4,6],"Value":"PL"},{"Type":[2,5,4,8],"Value":"Mazovia"},{"Type":[2,5,4,7],
    "Value":"Warsaw"},{"Type":[2,5,4,10],"Value":"Example Org"},{"Type":[2,5,4,11],"Value":"Unit A"},
    {"Type":[2,5,4,11],"Value":"Unit B"},{"Type":[2,5,4,3],"Value":"example.org"},{"Type":[1,2,840,
    113549,1,9,1],"Value":"a@example.org"},{"Type":[2,5,4,5],"Value":"77"},{"Type":[2,5,4,9],
    "Value":"Main 1"},{"Type":[2,5,4,17],"Value":"00-001"}],"Organization":["Example Org"],
    "OrganizationalUnit":["Unit A","Unit B"],"PostalCode":["00-001"],"Province":["Mazovia"],
    "SerialNumber":"77","StreetAddress":["Main 1"]}"#,
        11,
    );
}

#[test]
fn keys_times_and_raw_parts_are_there() {
    for (expression, want) in [
        ("PublicKey.E", "65537"),
        ("starts_with(PublicKey.N, '139561475025575317687651646870589815947776528420037853')", "true"),
        ("length(PublicKey.N)", "309"),
        ("NotBefore", "\"2026-11-21T06:55:50Z\""),
        ("NotAfter", "\"2036-11-18T06:55:50Z\""),
        ("Issuer == Subject", "true"),
        ("RawIssuer == RawSubject", "true"),
        ("length(Raw) > length(RawTBSCertificate)", "true"),
        ("starts_with(RawSubjectPublicKeyInfo, 'MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDGvfy39kSjU')", "true"),
        (
            "Signature",
            "\"gUgT6Q02lFnD4V8cH9C8UPURmRThhh7XFPjECJPE6hSG18uktbcUTQdt3gvX+yPlEwTwU2b9AZt/LfIlGjruUfgvQnHLGBv2xnz5nIceDpXY2h/ayO91ZnaRCH68orYMbNdW4H8KtWgKt/YxMQUjF4F/az7+VEnjKjvgcQsobTA=\"",
        ),
        ("Extensions[?Critical].Id | [0]", "[2,5,29,19]"),
        ("Extensions[0].Value", "\"MAYBAf8CAQI=\""),
        ("length(Extensions)", "10"),
    ] {
        let got = evaluate(&format!("x509_decode(pem) | {expression}"), CERTIFICATE).map(|v| v.to_json());
        assert_eq!(got.as_deref(), Ok(want), "{expression}");
    }
}

#[test]
fn what_is_no_rsa_certificate_is_refused() {
    let cut: String = CERTIFICATE.chars().take(100).collect();
    let broken = CERTIFICATE.replacen("MII", "AAA", 1);
    let other = CERTIFICATE.replace("CERTIFICATE", "NEW CERTIFICATE REQUEST");
    for (pem, want) in [
        ("", "failed to decode PEM block"),
        (cut.as_str(), "failed to decode PEM block"),
        (broken.as_str(), "x509: malformed certificate"),
        (other.as_str(), "PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST"),
        (ELLIPTIC, "certificate should use rsa algorithm"),
    ] {
        assert_eq!(evaluate("x509_decode(pem)", pem), Err(want.to_owned()));
    }
}

#[test]
fn only_the_first_block_counts_and_text_around_it_does_not() {
    let bundle = format!("subject=x\n{CERTIFICATE}{ELLIPTIC}").replace('\n', "\r\n");
    let want = evaluate("x509_decode(pem)", CERTIFICATE).unwrap();
    assert_eq!(evaluate("x509_decode(pem)", &bundle), Ok(want));
}

#[test]
fn mangled_certificates_do_no_harm() {
    let der: Vec<u8> = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        CERTIFICATE.lines().filter(|l| !l.starts_with('-')).collect::<String>(),
    )
    .unwrap();
    for i in (0..der.len()).step_by(3) {
        let mut der = der.clone();
        if let Some(byte) = der.get_mut(i) {
            *byte ^= 0x55;
        }
        let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, der);
        let _ =
            evaluate("x509_decode(pem)", &format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"));
    }
}
