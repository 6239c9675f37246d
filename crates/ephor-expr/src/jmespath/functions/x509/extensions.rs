//! The fields that come from extensions.

use x509_parser::asn1_rs::FromDer as _;
use x509_parser::extensions::{
    AuthorityInfoAccess, CRLDistributionPoints, DistributionPointName, GeneralName, GeneralSubtree, NameConstraints,
    ParsedExtension, X509Extension,
};
use x509_parser::oid_registry::Oid;

use super::decode::{X509Fault, bytes, list, oid};
use super::names::{GeneralNames, address};
use crate::value::{Map, Value};

/// Sets the fields that any certificate has, from its extensions or empty.
pub(super) fn insert_certificate_fields(fields: &mut Map, extensions: &[X509Extension<'_>]) -> Result<(), X509Fault> {
    for field in [
        "AuthorityKeyId",
        "CRLDistributionPoints",
        "DNSNames",
        "EmailAddresses",
        "ExcludedDNSDomains",
        "ExcludedEmailAddresses",
        "ExcludedIPRanges",
        "ExcludedURIDomains",
        "ExtKeyUsage",
        "IPAddresses",
        "IssuingCertificateURL",
        "OCSPServer",
        "PermittedDNSDomains",
        "PermittedEmailAddresses",
        "PermittedIPRanges",
        "PermittedURIDomains",
        "Policies",
        "PolicyIdentifiers",
        "PolicyMappings",
        "SubjectKeyId",
        "URIs",
        "UnknownExtKeyUsage",
    ] {
        fields.insert(field, Value::Null);
    }
    for field in ["BasicConstraintsValid", "IsCA", "MaxPathLenZero", "PermittedDNSDomainsCritical"] {
        fields.insert(field, false);
    }
    for field in ["KeyUsage", "MaxPathLen"] {
        fields.insert(field, 0);
    }
    insert_count(fields, "InhibitAnyPolicy", "InhibitAnyPolicyZero", None);
    insert_count(fields, "InhibitPolicyMapping", "InhibitPolicyMappingZero", None);
    insert_count(fields, "RequireExplicitPolicy", "RequireExplicitPolicyZero", None);
    insert_raw(fields, extensions);
    let mut unhandled = Vec::new();
    for extension in extensions {
        if !insert_extension(fields, extension)? && extension.critical {
            unhandled.push(oid(&extension.oid));
        }
    }
    fields.insert("UnhandledCriticalExtensions", list(unhandled));
    Ok(())
}

/// Sets the fields that any request has.
pub(super) fn insert_request_fields(fields: &mut Map, extensions: &[X509Extension<'_>]) -> Result<(), X509Fault> {
    insert_raw(fields, extensions);
    let names = extensions.iter().find_map(|e| match e.parsed_extension() {
        ParsedExtension::SubjectAlternativeName(names) => Some(names.general_names.as_slice()),
        _ => None,
    });
    let unreadable = extensions.iter().any(|e| matches!(e.parsed_extension(), ParsedExtension::ParseError { .. }));
    if unreadable {
        return Err(X509Fault::Malformed);
    }
    GeneralNames::collect(names.unwrap_or_default())?.insert_into(fields)
}

fn insert_raw(fields: &mut Map, extensions: &[X509Extension<'_>]) {
    let raw = extensions
        .iter()
        .map(|e| Value::from([("Id", oid(&e.oid)), ("Critical", e.critical.into()), ("Value", bytes(e.value))]));
    fields.insert("Extensions", list(raw.collect()));
    fields.insert("ExtraExtensions", Value::Null);
}

/// A count that may be absent, told from zero by a second field.
fn insert_count(fields: &mut Map, field: &str, zero_field: &str, count: Option<u32>) {
    fields.insert(field, i64::from(count.unwrap_or_default()));
    fields.insert(zero_field, count == Some(0));
}

/// Sets the fields of one extension; false if it has none.
fn insert_extension(fields: &mut Map, extension: &X509Extension<'_>) -> Result<bool, X509Fault> {
    match extension.parsed_extension() {
        ParsedExtension::ParseError { .. } => return Err(X509Fault::Malformed),
        ParsedExtension::BasicConstraints(constraints) => {
            fields.insert("BasicConstraintsValid", true);
            fields.insert("IsCA", constraints.ca);
            fields.insert("MaxPathLen", constraints.path_len_constraint.map_or(-1, i64::from));
            fields.insert("MaxPathLenZero", constraints.path_len_constraint == Some(0));
        }
        ParsedExtension::KeyUsage(usage) => {
            fields.insert("KeyUsage", i64::from(usage.flags));
        }
        ParsedExtension::ExtendedKeyUsage(_) => insert_extended_key_usage(fields, extension.value)?,
        ParsedExtension::SubjectAlternativeName(names) => {
            let names = GeneralNames::collect(&names.general_names)?;
            let handled = !names.is_empty();
            names.insert_into(fields)?;
            return Ok(handled);
        }
        ParsedExtension::NameConstraints(constraints) => {
            insert_name_constraints(fields, constraints)?;
            fields.insert("PermittedDNSDomainsCritical", extension.critical);
        }
        ParsedExtension::CRLDistributionPoints(points) => {
            fields.insert("CRLDistributionPoints", list(distribution_points(points)));
        }
        ParsedExtension::AuthorityKeyIdentifier(identifier) => {
            fields.insert("AuthorityKeyId", identifier.key_identifier.as_ref().map_or(Value::Null, |id| bytes(id.0)));
        }
        ParsedExtension::SubjectKeyIdentifier(identifier) => {
            fields.insert("SubjectKeyId", bytes(identifier.0));
        }
        ParsedExtension::CertificatePolicies(policies) => {
            let text = policies.iter().map(|p| p.policy_id.to_id_string().into());
            fields.insert("Policies", list(text.collect()));
            fields.insert("PolicyIdentifiers", list(policies.iter().map(|p| oid(&p.policy_id)).collect()));
        }
        ParsedExtension::PolicyMappings(mappings) => {
            let pairs = mappings.mappings.iter().map(|m| {
                Value::from([
                    ("IssuerDomainPolicy", m.issuer_domain_policy.to_id_string().into()),
                    ("SubjectDomainPolicy", m.subject_domain_policy.to_id_string().into()),
                ])
            });
            fields.insert("PolicyMappings", list(pairs.collect()));
        }
        ParsedExtension::PolicyConstraints(constraints) => {
            let (explicit, mapping) = (constraints.require_explicit_policy, constraints.inhibit_policy_mapping);
            insert_count(fields, "RequireExplicitPolicy", "RequireExplicitPolicyZero", explicit);
            insert_count(fields, "InhibitPolicyMapping", "InhibitPolicyMappingZero", mapping);
        }
        ParsedExtension::InhibitAnyPolicy(inhibit) => {
            insert_count(fields, "InhibitAnyPolicy", "InhibitAnyPolicyZero", Some(inhibit.skip_certs));
        }
        ParsedExtension::AuthorityInfoAccess(access) => insert_access(fields, access),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Known purposes as their places in Go's list, others as identifiers.
fn insert_extended_key_usage(fields: &mut Map, der: &[u8]) -> Result<(), X509Fault> {
    let (_, purposes) = Vec::<Oid<'_>>::from_der(der).map_err(|_| X509Fault::Malformed)?;
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for purpose in purposes {
        let place = match purpose.to_id_string().as_str() {
            "2.5.29.37.0" => 0,
            "1.3.6.1.5.5.7.3.1" => 1,
            "1.3.6.1.5.5.7.3.2" => 2,
            "1.3.6.1.5.5.7.3.3" => 3,
            "1.3.6.1.5.5.7.3.4" => 4,
            "1.3.6.1.5.5.7.3.5" => 5,
            "1.3.6.1.5.5.7.3.6" => 6,
            "1.3.6.1.5.5.7.3.7" => 7,
            "1.3.6.1.5.5.7.3.8" => 8,
            "1.3.6.1.5.5.7.3.9" => 9,
            "1.3.6.1.4.1.311.10.3.3" => 10,
            "2.16.840.1.113730.4.1" => 11,
            "1.3.6.1.4.1.311.2.1.22" => 12,
            "1.3.6.1.4.1.311.61.1.1" => 13,
            _ => {
                unknown.push(oid(&purpose));
                continue;
            }
        };
        known.push(Value::Int(place));
    }
    fields.insert("ExtKeyUsage", list(known));
    fields.insert("UnknownExtKeyUsage", list(unknown));
    Ok(())
}

fn insert_name_constraints(fields: &mut Map, constraints: &NameConstraints<'_>) -> Result<(), X509Fault> {
    let names = |subtrees: &Option<Vec<GeneralSubtree<'_>>>| {
        GeneralNames::collect(subtrees.iter().flatten().map(|subtree| &subtree.base))
    };
    for (kind, names) in
        [("Permitted", names(&constraints.permitted_subtrees)?), ("Excluded", names(&constraints.excluded_subtrees)?)]
    {
        let ranges: Option<Vec<Value>> = names.ip.iter().map(|bytes| range(bytes)).collect();
        fields.insert(format!("{kind}DNSDomains"), list(names.dns));
        fields.insert(format!("{kind}EmailAddresses"), list(names.email));
        fields.insert(format!("{kind}IPRanges"), list(ranges.ok_or(X509Fault::Malformed)?));
        fields.insert(format!("{kind}URIDomains"), list(names.uri.into_iter().map(Value::String).collect()));
    }
    Ok(())
}

/// An address followed by a mask of the same length.
fn range(pair: &[u8]) -> Option<Value> {
    let (ip, mask) = pair.split_at_checked(pair.len() / 2)?;
    Some(Value::from([("IP", address(ip)?.to_string().into()), ("Mask", bytes(mask))]))
}

fn distribution_points(points: &CRLDistributionPoints<'_>) -> Vec<Value> {
    let names = points.points.iter().filter_map(|point| match &point.distribution_point {
        Some(DistributionPointName::FullName(names)) => Some(names),
        _ => None,
    });
    names.flatten().filter_map(uri).collect()
}

fn insert_access(fields: &mut Map, access: &AuthorityInfoAccess<'_>) {
    for (field, method) in [("OCSPServer", "1.3.6.1.5.5.7.48.1"), ("IssuingCertificateURL", "1.3.6.1.5.5.7.48.2")] {
        let of_method = access.iter().filter(|d| d.access_method.to_id_string() == method);
        fields.insert(field, list(of_method.filter_map(|d| uri(&d.access_location)).collect()));
    }
}

fn uri(name: &GeneralName<'_>) -> Option<Value> {
    match name {
        GeneralName::URI(uri) => Some((*uri).into()),
        _ => None,
    }
}
