use super::*;
use crate::fetch::ServiceAnswer;

fn api(path: &str) -> Fetch {
    Fetch::Api { method: HttpMethod::Get, path: ApiPath::parse(path).unwrap(), body: None }
}

fn post(path: &str) -> Fetch {
    Fetch::Api { method: HttpMethod::Post, path: ApiPath::parse(path).unwrap(), body: Some("{}".into()) }
}

const OWN: Asker<'_> = Asker { namespace: Some("own"), effects: Effects::Real };

#[test]
fn a_namespaced_policy_reads_nothing_foreign() {
    let object = |namespace: &str, name: &str| Fetch::Object {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: namespace.into(),
        name: name.into(),
    };
    let foreign = [
        Fetch::ConfigMap { namespace: "other".into(), name: "c".into() },
        Fetch::ConfigMap { namespace: "own".into(), name: "../../other/configmaps/c".into() },
        Fetch::ConfigMap { namespace: "own".into(), name: "..".into() },
        api("/api/v1/namespaces/other/configmaps/c"),
        api("/api/v1/namespaces"),
        api("/api/v1/namespaces/own"),
        api("/api/v1/namespaces/own/"),
        api("/api/v1/namespaces/own/status"),
        api("/api/v1/namespaces/own/finalize"),
        api("/api/v1/nodes"),
        api("/api/v1/nodes/namespaces/"),
        api("/api/v1/nodes/n/proxy/namespaces/own/x"),
        api("/apis/namespaces/own/pods"),
        api("/namespaces/own/pods"),
        api("/api/v1/Namespaces/own/pods"),
        api("/api/v1/namespaces/owner/secrets?x=/namespaces/own/"),
        api("/version"),
        api("/api/v1/namespaces/own/pods/p/proxy/x"),
        api("/api/v1/namespaces/own/pods/p/%70roxy"),
        api("/api/v1/namespaces/own/services/http:s:80/proxy"),
        post("/api/v1/namespaces/own/configmaps"),
        post("/api/v1"),
        api("/api"),
        api("/apis/apps"),
        post("/api/v1/namespaces/own/serviceaccounts/default/token"),
        post("/apis/rbac.authorization.k8s.io/v1/namespaces/own/rolebindings"),
        post("/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        Fetch::Service {
            method: HttpMethod::Get,
            url: "http://x/namespaces/own".into(),
            headers: vec![],
            body: None,
            ca_bundle: None,
            answer: ServiceAnswer::Document,
        },
        Fetch::Host { name: "dG9wc2VjcmV0.example.com".into() },
        object("", "s"),
        object("own", "../../../v1/nodes/n"),
        Fetch::Objects { api_version: "v1".into(), kind: "Secret".into(), namespace: "".into() },
    ];
    for fetch in foreign {
        assert!(allow(fetch.clone(), OWN).is_err(), "{fetch:?}");
    }
}

#[test]
fn a_namespaced_policy_reads_its_own() {
    for fetch in [
        Fetch::ConfigMap { namespace: "own".into(), name: "c".into() },
        api("/api/v1/namespaces/own/configmaps/c"),
        api("/api/v1/namespaces/%6fwn/configmaps/c"),
        api("/apis/apps/v1/namespaces/own/deployments?limit=1"),
        // Every user may read which kinds there are.
        api("/api/v1"),
        api("/apis/apps/v1"),
        api("/apis/apps/v1/namespaces/own/deployments/d/scale"),
        post("/apis/authorization.k8s.io/v1/namespaces/own/localsubjectaccessreviews"),
    ] {
        assert!(allow(fetch.clone(), OWN).is_ok(), "{fetch:?}");
    }
}

#[test]
fn no_target_is_a_connection() {
    let target = |kind: &str| Fetch::Object {
        api_version: "v1".into(),
        kind: kind.into(),
        namespace: "own".into(),
        name: "p".into(),
    };
    for kind in ["Pod/proxy", "Service/proxy", "Node/proxy", "Pod/exec", "Pod/attach", "Pod/portforward", "Pod/proxy/x"]
    {
        for asker in [OWN, Asker::default()] {
            assert!(matches!(allow(target(kind), asker), Err(Refused::Connection { .. })), "{kind}");
        }
    }
    assert!(allow(target("Deployment/scale"), OWN).is_ok());
}

#[test]
fn odd_paths_are_no_paths() {
    for path in [
        "",
        "/",
        "api/v1/nodes",
        "//api",
        "/api//v1",
        "/api/../x",
        "/api/./x",
        "/api/%2e%2e/x",
        "/api/%2E./x",
        "/a\\b",
        "/api/v1/namespaces/own/../other/secrets",
        "/api/v1/namespaces/own%2f..%2fother/secrets",
        "/api/v1/namespaces/own%252fx/secrets",
        "/api/v1/pods/%",
        "/api/v1/pods/%7",
        "/api/v1/pods/%zz",
        "/api/v1/pods/%ff",
        "/api/v1/pods/%00",
        "/api/v1/pods#x",
        "/api/v1/pods/a\nb",
        "/api/v1/watch/namespaces/own/pods",
        "/api/v1/proxy/nodes/n",
        "/api/v1/namespaces/own/pods?watch=true",
        "/api/v1/namespaces/own/pods?watch",
        "/api/v1/namespaces/own/pods?%77atch=1",
        "/api/v1/namespaces/own/pods?limit=1&watch=yes",
        "/api/v1/namespaces/own/pods/p/log?follow=true",
        "/api/v1/namespaces/own/pods/p/exec?command=sh",
        "/api/v1/namespaces/own/pods/p/attach",
        "/api/v1/namespaces/own/pods/p/portforward",
    ] {
        assert!(ApiPath::parse(path).is_err(), "{path}");
    }
}

#[test]
fn a_dry_run_posts_nothing_but_reviews() {
    let service = |method| Fetch::Service {
        method,
        url: "http://x".into(),
        headers: vec![],
        body: None,
        ca_bundle: None,
        answer: ServiceAnswer::Document,
    };
    for (fetch, dry) in [
        (post("/apis/authorization.k8s.io/v1/subjectaccessreviews"), true),
        (post("/apis/authentication.k8s.io/v1/tokenreviews"), true),
        (post("/api/v1/namespaces/own/configmaps"), false),
        (post("/api/v1/namespaces/own/serviceaccounts/default/token"), false),
        (post("/api/v1/namespaces/own/pods/p/eviction"), false),
        (api("/api/v1/namespaces/own/configmaps"), true),
        (service(HttpMethod::Get), true),
        (service(HttpMethod::Post), false),
    ] {
        assert!(allow(fetch.clone(), Asker::default()).is_ok(), "{fetch:?}");
        let asker = Asker { namespace: None, effects: Effects::DryRun };
        assert_eq!(allow(fetch.clone(), asker).is_ok(), dry, "{fetch:?}");
        let asker = Asker { namespace: None, effects: Effects::Scan };
        let asks_a_service = matches!(fetch, Fetch::Service { .. });
        assert_eq!(allow(fetch.clone(), asker).is_ok(), dry || asks_a_service, "{fetch:?}");
    }
}

/// What a path is about, in one line.
fn about(path: &ApiPath) -> String {
    match path.route() {
        Route::Server(segments) => format!("server {}", segments.join(" ")),
        Route::Objects(o) => {
            let part = |part: &Option<ephor_expr::Str>| part.as_deref().unwrap_or("-").to_owned();
            let (namespace, name) = (part(&o.namespace), part(&o.name));
            format!("{}/{} {namespace} {} {name} {}", o.group, o.version, o.resource, o.below.join("/"))
        }
    }
}

#[test]
fn a_path_is_read_once_and_rendered_alike() {
    for (text, meaning, rendered) in [
        ("/api/v1/pods", "/v1 - pods - ", "/api/v1/pods"),
        ("/api/v1/pods/", "/v1 - pods - ", "/api/v1/pods"),
        ("/api/v1/namespaces/a", "/v1 - namespaces a ", "/api/v1/namespaces/a"),
        ("/api/v1/namespaces/a/status", "/v1 - namespaces a status", "/api/v1/namespaces/a/status"),
        ("/api/v1/namespaces/a/%73ecrets/b", "/v1 a secrets b ", "/api/v1/namespaces/a/secrets/b"),
        ("/api/v1/n%61mespaces/a/pods/b/log", "/v1 a pods b log", "/api/v1/namespaces/a/pods/b/log"),
        ("/api/v1/nodes/n/proxy/x/y", "/v1 - nodes n proxy/x/y", "/api/v1/nodes/n/proxy/x/y"),
        ("/apis/g.io/v1/things/system%3Aa%20b", "g.io/v1 - things system:a b ", "/apis/g.io/v1/things/system:a%20b"),
        ("/apis/g.io/v1/things/\u{e9}", "g.io/v1 - things \u{e9} ", "/apis/g.io/v1/things/%C3%A9"),
        ("/version", "server version", "/version"),
        ("/apis/apps/v1", "server apis apps v1", "/apis/apps/v1"),
        (
            "/api/v1/namespaces?labelSelector=appPriority%3Dcritical&&limit=5&x",
            "/v1 - namespaces - ",
            "/api/v1/namespaces?labelSelector=appPriority=critical&limit=5&x=",
        ),
        ("/api/v1/pods?a=b+c%26d%2B&watch=false", "/v1 - pods - ", "/api/v1/pods?a=b%20c%26d%2B&watch=false"),
    ] {
        let path = ApiPath::parse(text).unwrap();
        assert_eq!((about(&path).as_str(), path.to_string().as_str()), (meaning, rendered), "{text}");
        assert_eq!(ApiPath::parse(&path.to_string()), Ok(path), "{text}");
    }
}

/// Puts a path together from text in which `{x}` stands for the value.
fn with(template: &str, value: &str) -> Result<ApiPath, InvalidPath> {
    let mut pieces = Vec::new();
    for (i, text) in template.split("{x}").enumerate() {
        if i > 0 {
            pieces.push(Piece::Value(value));
        }
        pieces.push(Piece::Policy(text));
    }
    assemble(&pieces)
}

const NAMED: &str = "/api/v1/namespaces/own/configmaps/{x}";

#[test]
fn a_value_fills_its_place() {
    for (template, value, url) in [
        (NAMED, "a.b-c", "/api/v1/namespaces/own/configmaps/a.b-c"),
        (NAMED, "a b&c=d+e;", "/api/v1/namespaces/own/configmaps/a%20b&c=d+e;"),
        (NAMED, "{{ x }}", "/api/v1/namespaces/own/configmaps/%7B%7B%20x%20%7D%7D"),
        (NAMED, "..a", "/api/v1/namespaces/own/configmaps/..a"),
        (NAMED, "namespaces", "/api/v1/namespaces/own/configmaps/namespaces"),
        ("/api/v1/namespaces/own/configmaps/{x}-conf", "a", "/api/v1/namespaces/own/configmaps/a-conf"),
        ("/api/v1/namespaces/{x}/pods", "own", "/api/v1/namespaces/own/pods"),
        ("/api/v1/namespaces/{x}", "own", "/api/v1/namespaces/own"),
        ("/api/v1/namespaces/own/{x}", "secrets", "/api/v1/namespaces/own/secrets"),
        ("/apis/{x}/namespaces/own/deployments", "apps/v1", "/apis/apps/v1/namespaces/own/deployments"),
        ("/apis/{x}/v1/deployments", "apps", "/apis/apps/v1/deployments"),
        ("/apis/apps/{x}/deployments", "v1beta1", "/apis/apps/v1beta1/deployments"),
        ("/api/{x}/pods", "v1", "/api/v1/pods"),
        (
            "/api/v1/pods?fieldSelector=metadata.name={x}",
            "a&watch=1",
            "/api/v1/pods?fieldSelector=metadata.name=a%26watch=1",
        ),
        ("/api/v1/pods?labelSelector=a={x}-b&limit=1", "%2f#", "/api/v1/pods?labelSelector=a=%252f%23-b&limit=1"),
        ("/api/v1/pods?labelSelector={x}", "", "/api/v1/pods?labelSelector="),
    ] {
        assert_eq!(with(template, value).map(|path| path.to_string()).as_deref(), Ok(url), "{template} {value}");
    }
}

#[test]
fn a_value_never_says_more_than_its_place() {
    for (template, value) in [
        (NAMED, "../../namespaces/kube-system/secrets/x"),
        (NAMED, "../../../namespaces/kube-system/secrets/x"),
        (NAMED, "a/b"),
        (NAMED, "/"),
        (NAMED, ".."),
        (NAMED, "."),
        (NAMED, ""),
        (NAMED, "..%2fsecrets"),
        (NAMED, "%2e%2e"),
        (NAMED, "a%20b"),
        (NAMED, "a?watch=true"),
        (NAMED, "a#b"),
        (NAMED, "a\\b"),
        (NAMED, "a\nb"),
        (NAMED, "a\0"),
        ("/api/v1/namespaces/own/configmaps/.{x}", "."),
        ("/api/v1/namespaces/{x}/pods", ""),
        ("/api/v1/namespaces/{x}/pods", "own/secrets"),
        ("/api/v1/namespaces/own/{x}", "status"),
        ("/api/v1/namespaces/own/{x}", "finalize"),
        ("/api/v1/{x}/own/secrets", "namespaces"),
        ("/api/v1/name{x}/own/secrets", "spaces"),
        ("/api/v1/{x}/nodes", "proxy"),
        ("/api/v1/nodes/n/{x}", "proxy"),
        ("/api/v1/nodes/n/{x}", "exec"),
        ("/{x}/v1/pods", "api"),
        ("{x}", "/api/v1/secrets"),
        ("{x}/api/v1/secrets", ""),
        ("/{x}", "api/v1/secrets"),
        ("/apis/{x}/namespaces/own/pods", "v1"),
        ("/apis/{x}/namespaces/own/pods", "apps"),
        ("/apis/{x}/namespaces/own/pods", "apps/v1/nodes"),
        ("/apis/{x}/namespaces/own/pods", "apps/namespaces"),
        ("/apis/{x}/namespaces/own/pods", "../api"),
        ("/apis/{x}/namespaces/own/pods", "apps/"),
        ("/apis/{x}.io/v1/pods", "a/v1"),
        ("/apis/{x}/v1/pods", "a/v1"),
        ("/apis/{x}/{x}/pods", "a/v1"),
        ("/api/{x}/own/pods", "namespaces"),
        ("/api/v1/pods?{x}=true", "watch"),
        ("/api/v1/pods?{x}", "watch=true"),
        ("/api/v1/pods?watch={x}", "true"),
        ("/api/v1/pods?labelSelector={x}", "a\nb"),
    ] {
        assert!(with(template, value).is_err(), "{template} {value}: {:?}", with(template, value));
    }
}

#[test]
fn a_value_for_group_and_version_leaves_the_rest_where_it_is() {
    let with_two = |first, second| {
        let after = [Piece::Policy("/namespaces/own/pods")];
        let before = [Piece::Policy("/apis/"), Piece::Value(first), Piece::Policy("/"), Piece::Value(second)];
        assemble(&[before.as_slice(), &after].concat())
    };
    assert!(with_two("apps", "v1").is_ok());
    assert!(with_two("apps/v1", "nodes").is_err());
    assert!(with_two("apps", "nodes").is_err());
}

#[test]
fn refusals_say_what_may_not_stand_where() {
    let said = |template, value| with(template, value).unwrap_err().to_string();
    assert_eq!(
        said("/api/v1/nodes/{x}", "a/\u{1b}"),
        "`a/\\u{1b}` may not stand in `/api/v1/nodes/a/\\u{1b}`: a value in a path is one name, which is not empty, \
         `.` or `..` and has no `/`, `\\`, `%`, `?`, `#` or control character"
    );
    assert_eq!(
        said("/api/v1/pods?{x}", "watch"),
        "`watch` may not stand in `/api/v1/pods?watch`: only the policy's own text names parameters"
    );
}

#[test]
fn reviews_and_secrets_are_known_by_what_the_path_means() {
    let path = |text| ApiPath::parse(text).unwrap();
    assert!(path("/api/v1/namespaces/a/%73ecrets").is_about_secrets());
    assert!(path("/api/v1/secrets?limit=1").is_about_secrets());
    assert!(!path("/apis/example.com/v1/secrets").is_about_secrets());
    assert!(!path("/api/v1/namespaces/secrets/pods").is_about_secrets());
    assert!(path("/apis/authorization.k8s.io/v1/subjectaccessreviews").is_review());
    assert!(path("/apis/authentication.k8s.io/v1/tokenreviews").is_review());
    assert!(!path("/apis/authorization.k8s.io/v1/subjectaccessreviews/x").is_review());
    assert!(!path("/api/v1/namespaces/a/serviceaccounts/b/token").is_review());
}
