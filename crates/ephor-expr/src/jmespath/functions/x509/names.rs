//! Subjects, issuers and alternative names.

use std::net::IpAddr;

use x509_parser::asn1_rs::Tag;
use x509_parser::extensions::GeneralName;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

use super::decode::{X509Fault, list, oid};
use crate::scalar::go_url::Url;
use crate::value::{Map, Str, Value};

/// A distinguished name: its parts by their meaning, and all of them in order under `Names`.
pub(super) fn name(name: &X509Name<'_>) -> Value {
    let mut fields = Map::new();
    for (field, identifier) in [
        ("Country", "2.5.4.6"),
        ("Organization", "2.5.4.10"),
        ("OrganizationalUnit", "2.5.4.11"),
        ("Locality", "2.5.4.7"),
        ("Province", "2.5.4.8"),
        ("StreetAddress", "2.5.4.9"),
        ("PostalCode", "2.5.4.17"),
    ] {
        fields.insert(field, list(parts(name, identifier).map(Value::String).collect()));
    }
    for (field, identifier) in [("CommonName", "2.5.4.3"), ("SerialNumber", "2.5.4.5")] {
        fields.insert(field, parts(name, identifier).last().unwrap_or_default());
    }
    let all =
        name.iter_attributes().map(|a| Value::from([("Type", oid(a.attr_type())), ("Value", Value::String(text(a)))]));
    fields.insert("Names", list(all.collect()));
    fields.insert("ExtraNames", Value::Null);
    Value::object(fields)
}

fn parts(name: &X509Name<'_>, identifier: &str) -> impl Iterator<Item = Str> {
    name.iter_attributes().filter(move |a| a.attr_type().to_id_string() == identifier).map(text)
}

fn text(attribute: &AttributeTypeAndValue<'_>) -> Str {
    let bytes = attribute.as_slice();
    if attribute.attr_value().tag() == Tag::BmpString {
        let units: Vec<u16> =
            bytes.chunks_exact(2).map(|pair| pair.iter().fold(0, |n, &b| n << 8 | u16::from(b))).collect();
        return String::from_utf16_lossy(&units).into();
    }
    String::from_utf8_lossy(bytes).into()
}

/// General names by kind, each kind in order.
#[derive(Default)]
pub(super) struct GeneralNames {
    pub(super) dns: Vec<Value>,
    pub(super) email: Vec<Value>,
    /// Addresses, or in constraints, address and mask.
    pub(super) ip: Vec<Vec<u8>>,
    pub(super) uri: Vec<Str>,
}

impl GeneralNames {
    /// Sorts names into kinds; other kinds are left out, unreadable names are an error.
    pub(super) fn collect<'a, 'b: 'a>(names: impl IntoIterator<Item = &'a GeneralName<'b>>) -> Result<Self, X509Fault> {
        let mut all = GeneralNames::default();
        for name in names {
            match name {
                GeneralName::DNSName(name) => all.dns.push((*name).into()),
                GeneralName::RFC822Name(name) => all.email.push((*name).into()),
                GeneralName::IPAddress(bytes) => all.ip.push(bytes.to_vec()),
                GeneralName::URI(uri) => all.uri.push(Str::new(uri)),
                GeneralName::Invalid(..) => return Err(X509Fault::Malformed),
                _ => {}
            }
        }
        Ok(all)
    }

    /// Whether there is no name of these kinds.
    pub(super) fn is_empty(&self) -> bool {
        self.dns.is_empty() && self.email.is_empty() && self.ip.is_empty() && self.uri.is_empty()
    }

    /// Sets the fields for alternative names of a subject.
    pub(super) fn insert_into(self, fields: &mut Map) -> Result<(), X509Fault> {
        let addresses: Option<Vec<Value>> =
            self.ip.iter().map(|bytes| address(bytes).map(|a| a.to_canonical().to_string().into())).collect();
        let uris: Option<Vec<Value>> = self.uri.iter().map(|uri| Url::parse(uri).ok().map(url)).collect();
        fields.insert("DNSNames", list(self.dns));
        fields.insert("EmailAddresses", list(self.email));
        fields.insert("IPAddresses", list(addresses.ok_or(X509Fault::Malformed)?));
        fields.insert("URIs", list(uris.ok_or(X509Fault::Malformed)?));
        Ok(())
    }
}

/// The address of 4 or 16 bytes.
pub(super) fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

fn url(url: Url) -> Value {
    Value::from([
        ("Scheme", url.scheme.into()),
        ("Opaque", url.opaque.into()),
        ("User", if url.user { Value::object(Map::new()) } else { Value::Null }),
        ("Host", url.host.into()),
        ("Path", url.path.into()),
        ("RawPath", url.raw_path.into()),
        ("OmitHost", url.omit_host.into()),
        ("ForceQuery", url.force_query.into()),
        ("RawQuery", url.raw_query.into()),
        ("Fragment", url.fragment.into()),
        ("RawFragment", url.raw_fragment.into()),
    ])
}
