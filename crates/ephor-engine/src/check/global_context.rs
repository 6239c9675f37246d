//! `GlobalContextEntry`.

use std::collections::BTreeSet;

use ephor_expr::Value;
use ephor_expr::jmespath::Expression;
use ephor_expr::scalar::duration::Duration;
use ephor_expr::value::{Path, decode};

use crate::compile::decode_finding;
use crate::diagnostic::Diagnostic;
use crate::policy::{GlobalApiCall, GlobalContextEntry, HttpMethod, Projection, WatchedResource};

/// Everything wrong with the document of a global context entry.
pub fn check_global_context(document: &Value) -> Vec<Diagnostic> {
    let entry: GlobalContextEntry = match decode(document) {
        Ok(entry) => entry,
        Err(faults) => return faults.into_iter().map(decode_finding).collect(),
    };
    let mut found = Vec::new();
    if !matches!(entry.api_version.as_str(), "kyverno.io/v2" | "kyverno.io/v2beta1" | "kyverno.io/v2alpha1") {
        let message = format!("`{}` is no version of this kind: use `kyverno.io/v2`", entry.api_version);
        found.push(Diagnostic::error("api-version", Path::root().key("apiVersion"), message));
    }
    if entry.metadata.name.is_empty() {
        found.push(Diagnostic::error("no-name", Path::root().key("metadata"), "an entry needs a name"));
    }
    let path = Path::root().key("spec");
    match (&entry.spec.kubernetes_resource, &entry.spec.api_call) {
        (Some(resource), None) => watched(resource, &path.key("kubernetesResource"), &mut found),
        (None, Some(call)) => api_call(call, &path.key("apiCall"), &mut found),
        _ => {
            let message = "an entry needs exactly one of `kubernetesResource`, `apiCall`";
            found.push(Diagnostic::error("one-source", path.clone(), message));
        }
    }
    projections(entry.spec.projections.as_deref().unwrap_or_default(), &path.key("projections"), &mut found);
    found
}

fn watched(resource: &WatchedResource, path: &Path, found: &mut Vec<Diagnostic>) {
    let group_missing = resource.group.is_empty() && resource.version != "v1";
    for (key, is_missing) in
        [("group", group_missing), ("version", resource.version.is_empty()), ("resource", resource.resource.is_empty())]
    {
        if is_missing {
            found.push(Diagnostic::error("watched-resource", path.clone(), format!("`{key}` is needed")));
        }
    }
}

fn api_call(call: &GlobalApiCall, path: &Path, found: &mut Vec<Diagnostic>) {
    let url = call.url_path.as_ref().is_some_and(|url| !url.is_empty());
    if url == call.service.is_some() {
        let message = "a call needs exactly one of `urlPath`, `service`";
        found.push(Diagnostic::error("one-source", path.clone(), message));
    }
    if call.data.as_ref().is_some_and(|data| !data.is_empty()) && call.method != Some(HttpMethod::Post) {
        let message = "`data` is sent with method POST only";
        found.push(Diagnostic::error("data-without-post", path.key("data"), message).at_key());
    }
    if let Some(interval) = &call.refresh_interval
        && Duration::parse(interval).map_or(true, |interval| interval.as_secs_f64() <= 0.0)
    {
        let message = format!("`{interval}` is not a duration above zero");
        found.push(Diagnostic::error("refresh-interval", path.key("refreshInterval"), message));
    }
    if let Some(limit) = call.retry_limit.filter(|limit| *limit < 1) {
        let message = format!("a retry limit is at least 1, found {limit}");
        found.push(Diagnostic::error("retry-limit", path.key("retryLimit"), message));
    }
}

fn projections(projections: &[Projection], path: &Path, found: &mut Vec<Diagnostic>) {
    let mut names = BTreeSet::new();
    for (i, projection) in projections.iter().enumerate() {
        let at = path.index(i);
        if projection.name.is_empty() {
            found.push(Diagnostic::error("no-name", at.clone(), "a projection needs a name"));
        }
        if !names.insert(&projection.name) {
            let message = format!("two projections are called `{}`", projection.name);
            found.push(Diagnostic::error("duplicate-projection", at.key("name"), message));
        }
        if let Err(error) = Expression::compile(&projection.jmes_path) {
            let mut finding = Diagnostic::error("invalid-expression", at.key("jmesPath"), error.message);
            finding.help = error.help;
            found.push(finding.at_offset(error.offset));
        }
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::check_global_context;

    fn found(spec: &str) -> Vec<String> {
        let text = format!("apiVersion: kyverno.io/v2\nkind: GlobalContextEntry\nmetadata: {{name: g}}\nspec: {spec}");
        let found = check_global_context(&parse_value(&text).unwrap());
        found.into_iter().map(|f| format!("{}: {}", f.path, f.message)).collect()
    }

    #[test]
    fn faults_are_found_with_their_places() {
        assert_eq!(found("{kubernetesResource: {version: v1, resource: pods}}"), [""; 0]);
        let many = [
            "{}",
            "{kubernetesResource: {version: v2, resource: pods}}",
            "{apiCall: {data: [{key: a, value: b}], refreshInterval: 1x, retryLimit: 0}}",
            "{kubernetesResource: {version: v1, resource: pods}, projections: [{name: a, jmesPath: 'items['}]}",
        ];
        let all: Vec<String> = many.into_iter().flat_map(found).collect();
        insta::assert_snapshot!(all.join("\n"), @r#"
spec: an entry needs exactly one of `kubernetesResource`, `apiCall`
spec.kubernetesResource: `group` is needed
spec.apiCall: a call needs exactly one of `urlPath`, `service`
spec.apiCall.data: `data` is sent with method POST only
spec.apiCall.refreshInterval: `1x` is not a duration above zero
spec.apiCall.retryLimit: a retry limit is at least 1, found 0
spec.projections[0].jmesPath: expected a number, `:` or `*` after `[`, found end of expression
"#);
    }
}
