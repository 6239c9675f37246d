//! The report of one object.
//!
//! Its name is the uid of the object, which also owns it. A report that would be larger than an API server stores is
//! cut into several: the first has that name, the others a number behind it.

use ephor_cluster::object;
use ephor_engine::outcome::Verdict;
use ephor_expr::{Map, Str, Value};

/// The label of everything that policies manage.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Its value.
pub const MANAGER: &str = "kyverno";

/// The label that keeps a policy out of reports.
pub const DISABLED: &str = "reports.kyverno.io/disabled";

/// A sort of rules whose results can be reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reported {
    /// Validate rules.
    Validate,
    /// Mutate rules, by requests.
    Mutate,
    /// Mutate rules with targets.
    MutateExisting,
    /// Generate rules.
    Generate,
    /// Rules that verify images.
    ImageVerify,
}

impl Reported {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Validate, Self::Mutate, Self::MutateExisting, Self::Generate, Self::ImageVerify];

    /// The word in the flag `--enableReporting`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Mutate => "mutate",
            Self::MutateExisting => "mutateExisting",
            Self::Generate => "generate",
            Self::ImageVerify => "imageVerify",
        }
    }

    /// The sort of a word; `None` if there is none of that name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sort| sort.as_str() == word)
    }
}

/// Which API a report is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// `PolicyReport` and `ClusterPolicyReport` of `wgpolicyk8s.io`.
    #[default]
    WgPolicy,
    /// `Report` and `ClusterReport` of `openreports.io`.
    OpenReports,
}

impl Dialect {
    /// The `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::WgPolicy => "wgpolicyk8s.io/v1alpha2",
            Self::OpenReports => "openreports.io/v1alpha1",
        }
    }

    /// The kind of reports about namespaced, or about cluster-scoped objects.
    pub fn kind(self, namespaced: bool) -> &'static str {
        match (self, namespaced) {
            (Self::WgPolicy, true) => "PolicyReport",
            (Self::WgPolicy, false) => "ClusterPolicyReport",
            (Self::OpenReports, true) => "Report",
            (Self::OpenReports, false) => "ClusterReport",
        }
    }
}

/// The object that a report is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Its `apiVersion`.
    pub api_version: Str,
    /// Its kind.
    pub kind: Str,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
    /// Its uid.
    pub uid: Str,
}

impl Scope {
    /// The scope that `object` is.
    pub fn of(object: &Value) -> Self {
        Self::read(object, |key| object.str_at(&["metadata", key]))
    }

    /// What a stored report is about.
    pub fn of_report(report: &Value) -> Self {
        let scope = report.get("scope").cloned().unwrap_or_default();
        Self::read(&scope, |key| scope.str_at(&[key]))
    }

    fn read<'o>(object: &'o Value, metadata: impl Fn(&str) -> Option<&'o str>) -> Self {
        let top = |key| Str::new(object.str_at(&[key]).unwrap_or_default());
        let text = |key| Str::new(metadata(key).unwrap_or_default());
        Self {
            api_version: top("apiVersion"),
            kind: top("kind"),
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
        }
    }

    fn reference(&self) -> Map {
        let members =
            [("apiVersion", &self.api_version), ("kind", &self.kind), ("name", &self.name), ("uid", &self.uid)];
        members.into_iter().map(|(key, text)| (Str::new_static(key), Value::from(text.clone()))).collect()
    }

    fn value(&self) -> Value {
        let mut map = self.reference();
        if !self.namespace.is_empty() {
            map.insert("namespace", self.namespace.clone());
        }
        map.into()
    }
}

/// How many results of each sort there are, as reports say it.
pub fn summary<'v>(results: impl IntoIterator<Item = &'v str>) -> Value {
    let words = [Verdict::Error, Verdict::Fail, Verdict::Pass, Verdict::Skip, Verdict::Warn].map(Verdict::as_str);
    let mut counts = [0_i64; 5];
    for result in results {
        for (word, count) in words.iter().zip(&mut counts) {
            *count += i64::from(*word == result);
        }
    }
    Value::object(words.iter().zip(counts).map(|(word, count)| (Str::new_static(word), Value::from(count))).collect())
}

/// The reports that hold `results` (rendered and sorted) about `scope`; none if there are none. Each is at most
/// `max_bytes` long as JSON, unless one result alone is longer.
pub fn reports(dialect: Dialect, scope: &Scope, results: Vec<Value>, max_bytes: usize) -> Vec<Value> {
    let mut chunks: Vec<Vec<Value>> = Vec::new();
    let mut room = 0;
    for result in results {
        let length = result.to_json().len();
        if length > room || chunks.is_empty() {
            chunks.push(Vec::new());
            room = max_bytes;
        }
        room = room.saturating_sub(length);
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(result);
        }
    }
    let documents = chunks.into_iter().enumerate();
    documents.map(|(index, chunk)| document(dialect, scope, name(&scope.uid, index), Value::array(chunk))).collect()
}

/// The name of the report number `index` about the object of that uid.
pub fn name(uid: &str, index: usize) -> Str {
    if index == 0 { uid.into() } else { format!("{uid}-{index}").into() }
}

/// The report of that name about `scope`; `results` is an array.
pub(crate) fn document(dialect: Dialect, scope: &Scope, name: Str, results: Value) -> Value {
    let namespaced = !scope.namespace.is_empty();
    let mut metadata = Map::new();
    metadata.insert("name", name);
    if namespaced {
        metadata.insert("namespace", scope.namespace.clone());
    }
    metadata.insert("labels", Value::from([(MANAGED_BY, MANAGER.into())]));
    metadata.insert("ownerReferences", Value::array(vec![scope.reference().into()]));
    let rendered = results.as_array().unwrap_or_default();
    let counts = summary(rendered.iter().filter_map(|result| result.str_at(&["result"])));
    let mut report = Map::new();
    report.insert("apiVersion", dialect.api_version());
    report.insert("kind", dialect.kind(namespaced));
    report.insert("metadata", metadata);
    report.insert("results", results);
    report.insert("scope", scope.value());
    if dialect == Dialect::OpenReports {
        report.insert("source", "");
    }
    report.insert("summary", counts);
    Value::object(report)
}

/// Whether a stored report was written for the object that it names as its scope, and may be changed or deleted: it
/// carries the label, and is named by the uid of its scope.
pub fn is_ours(report: &Value) -> bool {
    let uid = report.str_at(&["scope", "uid"]).unwrap_or_default();
    report.str_at(&["metadata", "labels", MANAGED_BY]) == Some(MANAGER)
        && !uid.is_empty()
        && object::name(report).strip_prefix(uid).is_some_and(|rest| {
            rest.is_empty() || rest.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n > 0))
        })
}

/// The results in a report.
pub fn results(report: &Value) -> &[Value] {
    report.get("results").and_then(Value::as_array).unwrap_or_default()
}

/// What of a report readers see and writers compare, as text: everything but timestamps, and of the metadata labels and
/// owners. Two reports with the same text need no write.
pub fn content(report: &Value) -> String {
    let results = report.get("results").and_then(Value::as_array).unwrap_or_default();
    let results = results.iter().map(super::merge::without_timestamp);
    let metadata =
        ["labels", "ownerReferences"].map(|key| (key, report.at(&["metadata", key]).cloned().unwrap_or_default()));
    let members = ["apiVersion", "kind", "scope", "source", "summary"]
        .map(|key| (key, report.get(key).cloned().unwrap_or_default()));
    let mut map: Map = members.into_iter().chain(metadata).map(|(key, value)| (Str::new_static(key), value)).collect();
    map.insert("results", Value::array(results.collect()));
    Value::object(map).to_json()
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml;

    use super::*;

    fn scope(namespace: &str) -> Scope {
        let text = Str::new_static;
        Scope {
            api_version: text("v1"),
            kind: text("ConfigMap"),
            namespace: namespace.into(),
            name: text("colours"),
            uid: text("1eb95854"),
        }
    }

    fn results(number: usize) -> Vec<Value> {
        let one = |i: usize| Value::from([("policy", format!("p{i}").into()), ("result", "fail".into())]);
        (0..number).map(one).collect()
    }

    #[test]
    fn a_report_is_named_by_the_uid_of_its_object_and_owned_by_it() {
        let made = reports(Dialect::WgPolicy, &scope("paint"), results(1), 1000);
        let expected = yaml::parse_value(
            "apiVersion: wgpolicyk8s.io/v1alpha2\nkind: PolicyReport\nmetadata:\n  labels: {app.kubernetes.io/managed-by: \
             kyverno}\n  name: 1eb95854\n  namespace: paint\n  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: \
             colours, uid: 1eb95854}]\nresults: [{policy: p0, result: fail}]\nscope: {apiVersion: v1, kind: ConfigMap, \
             name: colours, namespace: paint, uid: 1eb95854}\nsummary: {error: 0, fail: 1, pass: 0, skip: 0, warn: 0}\n",
        );
        assert_eq!(made, [expected.unwrap()]);
    }

    #[test]
    fn open_reports_have_a_source_and_their_own_kinds() {
        let made = reports(Dialect::OpenReports, &scope(""), results(1), 1000);
        let text = |key| made[0].str_at(&[key]);
        assert_eq!(
            [text("apiVersion"), text("kind"), text("source")],
            [Some("openreports.io/v1alpha1"), Some("ClusterReport"), Some("")]
        );
        assert_eq!(made[0].at(&["metadata", "namespace"]), None);
    }

    #[test]
    fn a_report_that_would_be_too_long_is_cut() {
        let made = reports(Dialect::WgPolicy, &scope("paint"), results(5), 70);
        let names: Vec<&str> = made.iter().map(object::name).collect();
        assert_eq!(names, ["1eb95854", "1eb95854-1", "1eb95854-2"]);
        assert!(made.iter().all(is_ours));
        let counts: Vec<usize> = made.iter().filter_map(|r| Some(r.get("results")?.as_array()?.len())).collect();
        assert_eq!(counts, [2, 2, 1]);
    }

    #[test]
    fn reports_of_others_are_not_ours() {
        let ours = reports(Dialect::WgPolicy, &scope("paint"), results(1), 1000).remove(0);
        let renamed = |name: &str| {
            let mut report = ours.clone();
            object::set(&mut report, "name", name);
            report
        };
        let mut unlabelled = ours.clone();
        object::unset(&mut unlabelled, "labels");
        for foreign in [unlabelled, renamed("trivy"), renamed("1eb95854-x"), renamed("1eb95854-0")] {
            assert!(!is_ours(&foreign), "{foreign:?}");
        }
    }

    #[test]
    fn timestamps_are_no_content() {
        let mut later = results(1);
        later[0].as_object_mut().unwrap().insert("timestamp", Value::from([("seconds", 5_i64.into())]));
        let of = |results| content(&reports(Dialect::WgPolicy, &scope("paint"), results, 1000)[0]);
        assert_eq!(of(results(1)), of(later));
        assert_ne!(of(results(1)), of(results(2)));
    }
}
