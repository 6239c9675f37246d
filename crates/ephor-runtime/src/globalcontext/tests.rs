//! Entries over a cluster in memory.

use std::time::{Duration, Instant};

use ephor_cluster::{DeleteOptions, MemoryCluster, WriteOptions};
use ephor_engine::policy::GlobalApiCall;
use ephor_expr::yaml::parse_value;

use super::load::refresh_interval;
use super::*;

fn object(cluster: &dyn Cluster, text: &str) {
    let object = parse_value(text).unwrap();
    let text = |key| object.str_at(&[key]).unwrap();
    let kind = cluster.resolve(text("apiVersion"), text("kind")).unwrap();
    cluster.create(&kind, object, &WriteOptions::default()).unwrap();
}

fn config_map(cluster: &dyn Cluster, namespace: &str, name: &str) {
    let kind = cluster.resolve("v1", "Namespace").unwrap();
    if cluster.get(&kind, None, namespace).is_err() {
        object(cluster, &format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}"));
    }
    let metadata = format!("metadata: {{name: {name}, namespace: {namespace}}}");
    object(cluster, &format!("{{apiVersion: v1, kind: ConfigMap, {metadata}}}"));
}

fn entry(name: &str, spec: &str) -> Value {
    let text =
        format!("{{apiVersion: kyverno.io/v2, kind: GlobalContextEntry, metadata: {{name: {name}}}, spec: {spec}}}");
    parse_value(&text).unwrap()
}

fn answer(store: &GlobalContext, name: &str) -> String {
    match store.answer(&Fetch::Global { name: name.into() }).unwrap() {
        Fact::Found(value) => value.to_json(),
        Fact::Failed(why) | Fact::NotFound(why) => why,
        other => format!("{other:?}"),
    }
}

fn eventually(store: &GlobalContext, name: &str, want: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    while answer(store, name) != want {
        assert!(Instant::now() < until, "{name}: {} instead of {want}", answer(store, name));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_entry_about_a_resource_follows_its_objects() {
    let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
    let stop = CancellationToken::new();
    let (store, _watcher) = GlobalContext::follow(&cluster, None, &stop);
    config_map(&*cluster, "a", "one");
    config_map(&*cluster, "b", "two");
    let kind = cluster.resolve("kyverno.io/v2", "GlobalContextEntry").unwrap();
    let spec = "{kubernetesResource: {version: v1, resource: configmaps}, projections: [{name: of.a, jmesPath: \
                \"[?metadata.namespace=='a'].metadata.name\"}]}";
    cluster.create(&kind, entry("all", spec), &WriteOptions::default()).unwrap();
    eventually(&store, "all.of.a", r#"["one"]"#);
    config_map(&*cluster, "a", "three");
    eventually(&store, "all.of.a", r#"["one","three"]"#);
    cluster.delete(&kind, None, "all", &DeleteOptions::default()).unwrap();
    eventually(&store, "all.of.a", "global context entry `all.of.a` not found");
    stop.cancel();
}

#[test]
fn an_entry_about_secrets_tells_that_it_is() {
    let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
    let stop = CancellationToken::new();
    let store = GlobalContext::new(&cluster, None, &stop, Loading::Followed);
    let spec = |resource| {
        format!(
            "{{kubernetesResource: {{version: v1, resource: {resource}}}, projections: [{{name: keys, jmesPath: '[].data.k'}}]}}"
        )
    };
    store.apply(StoreEvent::Apply(entry("s", &spec("secrets"))));
    store.apply(StoreEvent::Apply(entry("c", &spec("configmaps"))));
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}, data: {k: dG9wc2VjcmV0}}";
    let kind = cluster.resolve("v1", "Secret").unwrap();
    cluster.create(&kind, parse_value(secret).unwrap(), &WriteOptions::default()).unwrap();
    eventually(&store, "s.keys", r#"["dG9wc2VjcmV0"]"#);
    let secrets = store.secrets(&Fetch::Global { name: "s.keys".into() }).unwrap();
    assert_eq!(secrets.as_array().map(<[_]>::len), Some(1));
    assert_eq!(store.secrets(&Fetch::Global { name: "c".into() }), None);
    stop.cancel();
}

#[test]
fn an_entry_about_a_call_repeats_it() {
    let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
    let stop = CancellationToken::new();
    let store = GlobalContext::new(&cluster, None, &stop, Loading::Followed);
    let spec = "{apiCall: {urlPath: /api/v1/namespaces/a/configmaps, refreshInterval: 20ms}, projections: [{name: count, \
                jmesPath: 'items | length(@)'}]}";
    store.apply(StoreEvent::Apply(entry("calls", spec)));
    eventually(&store, "calls.count", "0");
    config_map(&*cluster, "a", "one");
    eventually(&store, "calls.count", "1");
    stop.cancel();
}

#[test]
fn calls_are_a_second_apart_at_least() {
    for (asked, seconds) in [(Some("1ms"), 1), (Some("1s"), 1), (Some("1h"), 3600), (Some("-1s"), 600), (None, 600)] {
        let call = GlobalApiCall { refresh_interval: asked.map(Into::into), ..GlobalApiCall::default() };
        assert_eq!(refresh_interval(&call), Duration::from_secs(seconds), "{asked:?}");
    }
}

#[test]
fn what_cannot_be_loaded_says_why() {
    let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
    let stop = CancellationToken::new();
    let store = GlobalContext::new(&cluster, None, &stop, Loading::Followed);
    for (name, spec, want) in [
        (
            "gadgets",
            "{kubernetesResource: {group: example.com, version: v1, resource: gadgets}}",
            "global context entry `gadgets`: there is no resource `gadgets` in group `example.com`, version `v1`",
        ),
        (
            "path",
            "{apiCall: {urlPath: /api/../secret}}",
            "global context entry `path`: `/api/../secret` is not a plain path: it must begin with `/` and hold no `..`, \
             `//`, backslash or encoded slash",
        ),
        (
            "service",
            "{apiCall: {service: {url: 'http://x'}}}",
            "global context entry `service`: services are not called here",
        ),
        (
            "none",
            "{}",
            "global context entry `none`: spec: an entry needs exactly one of `kubernetesResource`, `apiCall`",
        ),
        (
            "projected",
            "{apiCall: {urlPath: /api/v1/namespaces}, projections: [{name: p, jmesPath: 'a.b'}]}",
            "global context entry `projected`: projection `p`: Unknown key \"a\" in path",
        ),
    ] {
        store.apply(StoreEvent::Apply(entry(name, spec)));
        eventually(&store, name, want);
    }
    assert_eq!(answer(&store, "else"), "global context entry `else` not found");
    stop.cancel();
}

#[test]
fn a_changed_entry_is_loaded_anew() {
    let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
    let stop = CancellationToken::new();
    let store = GlobalContext::new(&cluster, None, &stop, Loading::Followed);
    config_map(&*cluster, "a", "one");
    let of = |namespace: &str| {
        let resource = format!("{{version: v1, resource: configmaps, namespace: {namespace}}}");
        let spec = format!("{{kubernetesResource: {resource}, projections: [{{name: count, jmesPath: 'length(@)'}}]}}");
        entry("changing", &spec)
    };
    store.apply(StoreEvent::Apply(of("a")));
    eventually(&store, "changing.count", "1");
    store.apply(StoreEvent::Apply(of("b")));
    eventually(&store, "changing.count", "0");
    stop.cancel();
}

#[test]
fn an_entry_on_demand_is_read_once_and_told_of_what_happens() {
    let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
    let store = GlobalContext::on_demand(&cluster);
    let spec = "{kubernetesResource: {version: v1, resource: configmaps, namespace: a}, projections: [{name: names, \
                jmesPath: '[].metadata.name'}]}";
    store.apply(StoreEvent::Apply(entry("maps", spec)));
    config_map(&*cluster, "a", "one");
    assert_eq!(answer(&store, "maps.names"), r#"["one"]"#);
    let object = |namespace: &str, name: &str| {
        let metadata = format!("metadata: {{name: {name}, namespace: {namespace}}}");
        parse_value(&format!("{{apiVersion: v1, kind: ConfigMap, {metadata}}}")).unwrap()
    };
    store.tell("", "ConfigMap", &StoreEvent::Apply(object("a", "two")));
    store.tell("", "ConfigMap", &StoreEvent::Apply(object("b", "elsewhere")));
    store.tell("", "Secret", &StoreEvent::Apply(object("a", "other")));
    assert_eq!(answer(&store, "maps.names"), r#"["one","two"]"#);
    store.tell("", "ConfigMap", &StoreEvent::Delete(object("a", "one")));
    assert_eq!(answer(&store, "maps.names"), r#"["two"]"#);
    store.apply(StoreEvent::Apply(entry("calls", "{apiCall: {urlPath: /api/v1/namespaces/a/nothing}}")));
    assert_ne!(answer(&store, "calls"), "global context entry `calls`: not loaded yet");
}
