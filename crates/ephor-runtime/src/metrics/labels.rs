//! Label values, which come from closed sets.

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

use super::Text;

/// What stands for a namespace where there is none.
pub(super) const NO_NAMESPACE: &str = "-";

/// The label value for everything beyond the bound.
pub(super) const OTHER: &str = "_other";

/// A label value as families store it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LabelText(pub(super) Text);

impl EncodeLabelValue for LabelText {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&self.0.as_str(), encoder)
    }
}

/// A namespace.
pub(super) fn namespace(namespace: &str) -> &str {
    if namespace.is_empty() { NO_NAMESPACE } else { namespace }
}

/// The namespace of an object. A request about a Namespace is made in the Namespace itself, which would make a series
/// for each of them; upstream says that there is none.
pub(super) fn namespace_of<'n>(group: &str, kind: &str, requested: &'n str) -> &'n str {
    namespace(if group.is_empty() && kind == "Namespace" { "" } else { requested })
}

/// An HTTP method.
pub(super) fn method(method: &str) -> &'static str {
    const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
    METHODS.into_iter().find(|known| *known == method).unwrap_or(OTHER)
}

/// The path of a webhook; names of policies in it are left out.
pub(super) fn url(path: &str) -> String {
    const PATHS: [&str; 8] = [
        "/policyvalidate",
        "/policymutate",
        "/exceptionvalidate",
        "/globalcontextvalidate",
        "/verifymutate",
        "/verifyttl",
        "/health/liveness",
        "/health/readiness",
    ];
    if PATHS.contains(&path) {
        return path.to_owned();
    }
    let mut parts = path.trim_start_matches('/').split('/');
    let (Some(head @ ("validate" | "mutate")), scope, own) = (parts.next(), parts.next(), parts.next()) else {
        return OTHER.to_owned();
    };
    match (scope, own) {
        (None, _) => format!("/{head}"),
        (Some(scope @ ("fail" | "ignore")), None) => format!("/{head}/{scope}"),
        (Some(scope @ ("fail" | "ignore")), Some("finegrained")) => format!("/{head}/{scope}/finegrained"),
        _ => OTHER.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::url;

    #[test]
    fn paths_are_a_closed_set() {
        for (path, want) in [
            ("/validate", "/validate"),
            ("/validate/fail", "/validate/fail"),
            ("/mutate/ignore/finegrained/ns/name", "/mutate/ignore/finegrained"),
            ("/policyvalidate", "/policyvalidate"),
            ("/validate/x", "_other"),
            ("/../etc", "_other"),
            ("", "_other"),
        ] {
            assert_eq!(url(path), want, "{path}");
        }
    }
}
