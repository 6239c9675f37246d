//! The observed selections of engine.md 8.6, and what follows from its section 2.

use ephor_expr::value::decode;
use ephor_expr::{Map, Str, Value};

use super::*;
use crate::policy::{Match, Operation};

/// The objects of a test, owned; [`Request::input`] borrows from it.
struct Request {
    gvk: Gvk,
    subresource: &'static str,
    namespace: &'static str,
    object: Value,
    operation: Operation,
    user: Option<UserInfo>,
    namespace_labels: Option<Map>,
}

impl Request {
    fn new(api_version: &str, kind: &str, object: &str) -> Self {
        Self {
            gvk: Gvk::new(api_version, kind),
            subresource: "",
            namespace: "",
            object: json(object),
            operation: Operation::Create,
            user: None,
            namespace_labels: Some(Map::new()),
        }
    }

    fn input(&self) -> MatchInput<'_> {
        let metadata = |key| self.object.str_at(&["metadata", key]).unwrap_or_default();
        MatchInput {
            gvk: &self.gvk,
            subresource: self.subresource,
            name: metadata("name"),
            generate_name: metadata("generateName"),
            namespace: self.namespace,
            object: &self.object,
            operation: self.operation,
            user: self.user.as_ref(),
            namespace_labels: self.namespace_labels.as_ref().map_or(NamespaceLabels::Unknown, NamespaceLabels::Known),
        }
    }

    fn matches(&self, block: &str) -> Result<bool, MatchError> {
        self.matches_in(block, MatchMode::Rule)
    }

    fn matches_in(&self, block: &str, mode: MatchMode) -> Result<bool, MatchError> {
        matcher(block, mode).matches(&self.input())
    }

    fn applies(&self, matched: &str, excluded: &str) -> Result<bool, MatchError> {
        let (matched, excluded) = (matcher(matched, MatchMode::Rule), matcher(excluded, MatchMode::Rule));
        applies(&matched, Some(&excluded), &self.input())
    }

    #[track_caller]
    fn check(&self, hits: &[&str], misses: &[&str], block: impl Fn(&str) -> String) {
        for (given, expected) in hits.iter().map(|h| (h, true)).chain(misses.iter().map(|m| (m, false))) {
            assert_eq!(self.matches(&block(given)), Ok(expected), "{given}");
        }
    }

    #[track_caller]
    fn check_kinds(&self, hits: &[&str], misses: &[&str]) {
        self.check(hits, misses, |kind| format!(r#"{{"any":[{{"resources":{{"kinds":["{kind}"]}}}}]}}"#));
    }

    #[track_caller]
    fn check_resources(&self, hits: &[&str], misses: &[&str]) {
        self.check(hits, misses, resources);
    }
}

fn json(text: &str) -> Value {
    Value::from_json(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn matcher(block: &str, mode: MatchMode) -> Matcher {
    let block: Match = decode(&json(block)).unwrap_or_else(|e| panic!("{block}: {e:?}"));
    Matcher::compile(&block, mode).unwrap()
}

/// A block of one filter with these members of `resources`.
fn resources(members: &str) -> String {
    format!(r#"{{"any":[{{"resources":{{{members}}}}}]}}"#)
}

fn deployment() -> Request {
    let object = r#"{"metadata":{"name":"d1","namespace":"ns1","labels":{"app":"web","tier":"a1"},
        "annotations":{"corp.io/owner":"team-a"}}}"#;
    Request { namespace: "ns1", ..Request::new("apps/v1", "Deployment", object) }
}

fn alice() -> UserInfo {
    let list = |s: &str| vec![Str::new(s)];
    UserInfo {
        username: "alice".into(),
        groups: list("dev"),
        roles: list("ns1:r1"),
        cluster_roles: list("admin"),
        ..UserInfo::default()
    }
}

#[test]
fn kinds_select_an_object() {
    deployment().check_kinds(
        &[
            "Deployment",
            "Deploy*",
            "D?ployment",
            "*",
            "*/*",
            "*.*",
            "v1/Deployment",
            "*/Deployment",
            "apps/v1/Deployment",
            "apps/*/*",
            "apps.v1.Deployment",
            "v1/*",
            "Deployment/*",
            "apps/v1/Deployment/*",
        ],
        &[
            "deployment",
            "Deployment?",
            "Deployment/?*",
            "Deployment/scale",
            "apps/Deployment",
            "*/*/Deployment",
            "*/v1/Deployment",
            "v*/Deployment",
            "v2/Deployment",
            "apps/v1?/Deployment",
            "Deployment.v1.apps",
            "*/scale",
            "a/b/c/d/e",
            "",
        ],
    );
}

#[test]
fn kinds_select_a_subresource() {
    Request { subresource: "scale", ..deployment() }.check_kinds(
        &[
            "Deployment/scale",
            "Deployment.scale",
            "Deployment/*",
            "Deployment/?*",
            "Deployment/s*",
            "*/scale",
            "*/*",
            "*.*",
            "*/*/scale",
            "v1/*/scale",
            "v1/Deployment/scale",
            "apps/v1/Deployment/scale",
        ],
        &["Deployment", "Scale", "*", "autoscaling/v1/Scale", "*/Scale"],
    );
}

#[test]
fn ephemeral_containers_are_matched_by_their_pod() {
    let request = Request { subresource: "ephemeralcontainers", ..Request::new("v1", "Pod", "{}") };
    request.check_kinds(
        &["Pod", "Pod/ephemeralcontainers", "Pod/exec", "/v1/Pod", "v1.Pod", "Po*", "*"],
        &["core/v1/Pod", "*/v1/Pod"],
    );
    let block = resources(r#""kinds":["Pod"]"#);
    assert_eq!(request.matches_in(&block, MatchMode::Exception), Ok(true));
    assert_eq!(request.matches_in(&block, MatchMode::Cleanup), Ok(false));
}

#[test]
fn versions_may_have_several_digits() {
    Request::new("ex.io/v10", "Foo", "{}")
        .check_kinds(&["Foo", "ex.io/v10/Foo", "*.io/v*/Foo", "*/Foo", "v10/Foo"], &["v1?/Foo"]);
}

#[test]
fn attributes_of_objects_select() {
    deployment().check_resources(
        &[
            r#""names":["d?"]"#,
            r#""names":["x","d1"]"#,
            r#""name":"d*""#,
            r#""namespaces":["ns*"]"#,
            r#""annotations":{"corp.io/*":"team-?"}"#,
            r#""selector":{"matchLabels":{"app":"w*"}}"#,
            r#""selector":{"matchLabels":{"t??r":"a?"}}"#,
            r#""selector":{"matchLabels":{"*":"*"}}"#,
            r#""selector":{"matchExpressions":[{"key":"zz","operator":"NotIn","values":["w"]}]}"#,
            r#""operations":["CREATE"]"#,
        ],
        &[
            r#""names":["d"]"#,
            r#""names":[""]"#,
            r#""name":"d""#,
            r#""names":["d1"],"namespaces":["x"]"#,
            r#""name":"d1","names":["x"]"#,
            r#""annotations":{"corp.io/owner":"*","b":"c"}"#,
            r#""selector":{"matchLabels":{"app":"x*"}}"#,
            r#""selector":{"matchLabels":{"app":"web","tier":"a2"}}"#,
            r#""selector":{"matchExpressions":[{"key":"zz","operator":"In","values":["w"]}]}"#,
            r#""operations":["UPDATE"]"#,
            r#""namespaceSelector":{"matchLabels":{"e":"p"}}"#,
        ],
    );
}

#[test]
fn generate_name_stands_in_for_a_missing_name() {
    Request::new("v1", "Pod", r#"{"metadata":{"generateName":"gen-"}}"#)
        .check_resources(&[r#""names":["gen-*"]"#], &[r#""selector":{"matchLabels":{"*":"*"}}"#]);
}

#[test]
fn a_namespace_is_selected_by_name_and_never_by_namespace_labels() {
    let mut request = Request::new("v1", "Namespace", r#"{"metadata":{"name":"prod-1","labels":{"e":"p"}}}"#);
    request.namespace_labels = Some([("e".into(), Value::from("p"))].into_iter().collect());
    let labelled = r#""namespaceSelector":{"matchLabels":{"e":"p"}}"#;
    let unlabelled = r#""namespaceSelector":{"matchExpressions":[{"key":"zz","operator":"DoesNotExist"}]}"#;
    request.check_resources(&[r#""namespaces":["prod*"]"#], &[labelled, unlabelled]);
    for mode in [MatchMode::Exception, MatchMode::Cleanup] {
        let other = resources(r#""namespaceSelector":{"matchLabels":{"e":"other"}}"#);
        assert_eq!(request.matches_in(&other, mode), Ok(true), "{mode:?}");
    }
}

#[test]
fn namespace_labels_select() {
    let mut request = deployment();
    request.namespace_labels = Some([("e".into(), Value::from("p"))].into_iter().collect());
    request.check_resources(
        &[r#""namespaceSelector":{"matchLabels":{"e":"p"}}"#, r#""namespaceSelector":{"matchLabels":{"?":"*"}}"#],
        &[r#""namespaceSelector":{"matchLabels":{"e":"q"}}"#],
    );
}

#[test]
fn a_cluster_scoped_object_has_no_namespace_labels() {
    let mut request = Request::new("v1", "Node", "{}");
    request.namespace_labels = None;
    request.check_resources(
        &[r#""namespaceSelector":{"matchExpressions":[{"key":"e","operator":"DoesNotExist"}]}"#],
        &[r#""namespaceSelector":{"matchLabels":{"e":"p"}}"#],
    );
}

#[test]
fn unknown_namespace_labels_are_neither_match_nor_miss() {
    let request = Request { namespace_labels: None, ..deployment() };
    let unknown = || Err(MatchError::NamespaceLabelsUnavailable { namespace: "ns1".into() });
    let labelled = r#"{"resources":{"kinds":["Deployment"],"namespaceSelector":{"matchLabels":{"e":"p"}}}}"#;
    let (hit, miss) = (r#"{"resources":{"kinds":["*"]}}"#, r#"{"resources":{"kinds":["Pod"]}}"#);
    for (block, expected) in [
        (format!(r#"{{"any":[{labelled}]}}"#), unknown()),
        (format!(r#"{{"any":[{labelled},{miss}]}}"#), unknown()),
        (format!(r#"{{"any":[{labelled},{hit}]}}"#), Ok(true)),
        (format!(r#"{{"all":[{labelled},{hit}]}}"#), unknown()),
        (format!(r#"{{"all":[{labelled},{miss}]}}"#), Ok(false)),
        (resources(r#""kinds":["Pod"],"namespaceSelector":{"matchLabels":{"e":"p"}}"#), Ok(false)),
    ] {
        assert_eq!(request.matches(&block), expected, "{block}");
    }
    let (unclear, hit, miss) = (format!(r#"{{"any":[{labelled}]}}"#), any(hit), any(miss));
    for (matched, excluded, expected) in [
        (&unclear, &miss, unknown()),
        (&unclear, &hit, Ok(false)),
        (&hit, &unclear, unknown()),
        (&miss, &unclear, Ok(false)),
    ] {
        assert_eq!(request.applies(matched, excluded), expected, "match {matched} exclude {excluded}");
    }
}

fn any(filter: &str) -> String {
    format!(r#"{{"any":[{filter}]}}"#)
}

const USER_BOB: &str = r#"{"kind":"User","name":"bob"}"#;

#[test]
fn users_select() {
    let request = Request { user: Some(alice()), ..deployment() };
    let bot = |name: &str| UserInfo { username: name.into(), ..UserInfo::default() };
    request.check(
        &[
            r#""subjects":[{"kind":"User","name":"al*"}]"#,
            r#""subjects":[{"kind":"Group","name":"d*"}]"#,
            r#""subjects":[{"kind":"User","name":"bob"},{"kind":"Group","name":"dev"}]"#,
            r#""roles":["ns1:r1"]"#,
            r#""roles":["ns1:r1"],"clusterRoles":["admin"]"#,
        ],
        &[
            r#""roles":["ns1:*"]"#,
            r#""clusterRoles":["adm*"]"#,
            r#""roles":["ns1:zz"],"clusterRoles":["admin"]"#,
            &format!(r#""clusterRoles":["admin"],"subjects":[{USER_BOB}]"#),
            r#""subjects":[{"kind":"Robot","name":"*"}]"#,
        ],
        |members| format!(r#"{{"any":[{{{members}}}]}}"#),
    );
    for (username, expected) in
        [("system:serviceaccount:ns1:sa1", true), ("system:serviceaccount:ns2:sa1", false), ("sa1", false)]
    {
        let request = Request { user: Some(bot(username)), ..deployment() };
        let block = any(r#"{"subjects":[{"kind":"ServiceAccount","namespace":"ns1","name":"sa*"}]}"#);
        assert_eq!(request.matches(&block), Ok(expected), "{username}");
    }
}

#[test]
fn without_user_information_excludes_see_an_empty_user() {
    let request = deployment();
    let everything = any(r#"{"resources":{"kinds":["*"]}}"#);
    let fits = r#"{"resources":{"names":["d1"]}}"#;
    let other = r#"{"resources":{"names":["x"]}}"#;
    let subject = |kind: &str, name: &str| any(&format!(r#"{{"subjects":[{{"kind":"{kind}","name":"{name}"}}]}}"#));
    for (exclude, evaluated) in [
        (subject("User", "x"), true),
        (subject("Group", "*"), true),
        (any(r#"{"clusterRoles":["admin"]}"#), true),
        (any("{}"), true),
        ("{}".to_owned(), true),
        (format!(r#"{{"all":[{fits},{other}]}}"#), true),
        (subject("User", "*"), false),
        (format!(r#"{{"any":[{other},{fits}]}}"#), false),
        (format!(r#"{{"all":[{fits},{fits}]}}"#), false),
    ] {
        assert_eq!(request.applies(&everything, &exclude), Ok(evaluated), "{exclude}");
    }
}

#[test]
fn without_user_information_a_match_does_not_ask_for_users() {
    let request = deployment();
    let with_kind = any(&format!(r#"{{"resources":{{"kinds":["Deployment"]}},"subjects":[{USER_BOB}]}}"#));
    let users_only = any(&format!(r#"{{"subjects":[{USER_BOB}]}}"#));
    assert_eq!(request.matches(&with_kind), Ok(true));
    assert_eq!(request.matches(&users_only), Ok(false));
    // An exception for a user must not cover everyone when nobody is known.
    assert_eq!(request.matches_in(&with_kind, MatchMode::Exception), Ok(false));
}

#[test]
fn empty_blocks_match_nothing() {
    for block in ["{}", r#"{"any":[]}"#, r#"{"any":[{}]}"#, r#"{"resources":{}}"#, r#"{"all":[{"resources":{}}]}"#] {
        for mode in [MatchMode::Rule, MatchMode::Exception, MatchMode::Cleanup] {
            assert_eq!(deployment().matches_in(block, mode), Ok(false), "{block} {mode:?}");
        }
    }
}

#[test]
fn filters_join_by_their_block() {
    let (fits, other) = (r#"{"resources":{"names":["d1"]}}"#, r#"{"resources":{"names":["x"]}}"#);
    for (block, expected) in [
        (format!(r#"{{"any":[{other},{fits}]}}"#), true),
        (format!(r#"{{"all":[{other},{fits}]}}"#), false),
        (format!(r#"{{"all":[{fits},{fits}]}}"#), true),
        (format!(r#"{{"any":[],"all":[{fits}]}}"#), true),
        (r#"{"resources":{"names":["d1"],"kinds":["Deployment"]}}"#.to_owned(), true),
        (r#"{"resources":{"names":["d1"],"kinds":["Pod"]}}"#.to_owned(), false),
    ] {
        assert_eq!(deployment().matches(&block), Ok(expected), "{block}");
    }
}

#[test]
fn exceptions_and_cleanups_ignore_operations() {
    let request = deployment();
    let block = resources(r#""operations":["DELETE"]"#);
    assert_eq!(request.matches_in(&block, MatchMode::Rule), Ok(false));
    assert_eq!(request.matches_in(&block, MatchMode::Exception), Ok(true));
    assert_eq!(request.matches_in(&block, MatchMode::Cleanup), Ok(true));
}

#[test]
fn the_index_learns_which_kinds_a_block_can_select() {
    let names = |block: &str| {
        let matcher = matcher(block, MatchMode::Rule);
        matcher.kinds().map(|kinds| kinds.iter().map(|k| k.kind.as_str().to_owned()).collect::<Vec<_>>())
    };
    let kinds = |list: &str| format!(r#"{{"resources":{{"kinds":[{list}]}}}}"#);
    let anything = r#"{"resources":{"names":["x"]}}"#;
    let (one, two) = (kinds(r#""Pod""#), kinds(r#""apps/v1/Deployment","Jo*""#));
    assert_eq!(names(&format!(r#"{{"any":[{one},{two}]}}"#)).unwrap(), ["Pod", "Deployment", "Jo*"]);
    assert_eq!(names(&format!(r#"{{"any":[{one},{anything}]}}"#)), None);
    assert_eq!(names(&format!(r#"{{"all":[{anything},{one}]}}"#)).unwrap(), ["Pod"]);
    assert_eq!(names(&one).unwrap(), ["Pod"]);
}

#[test]
fn a_selector_that_cannot_be_is_refused_with_its_place() {
    let filter = r#"{"resources":{"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}}}"#;
    for (block, path) in [
        (any(filter), "any[0].resources.namespaceSelector.matchExpressions[0]"),
        (filter.to_owned(), "resources.namespaceSelector.matchExpressions[0]"),
    ] {
        let block: Match = decode(&json(&block)).unwrap();
        let error = Matcher::compile(&block, MatchMode::Rule).unwrap_err();
        assert_eq!(error.path().to_string(), path);
    }
}

#[test]
fn service_accounts_are_read_off_the_username() {
    for (username, expected) in [
        ("system:serviceaccount:ns1:sa1", ("ns1", "sa1")),
        ("0123456789012345678901team:bot", ("team", "bot")),
        ("0123456789012345678901a:b:c", ("a", "b")),
        ("system:serviceaccount:ns1", ("", "")),
        ("alice", ("", "")),
        ("ażżżżżżżżżżż:b:c", ("", "")),
    ] {
        let user = UserInfo { username: username.into(), ..UserInfo::default() };
        assert_eq!(user.service_account(), expected, "{username}");
    }
}
