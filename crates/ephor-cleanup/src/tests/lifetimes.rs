//! The label for lifetimes.

use std::sync::atomic::Ordering;

use super::harness::{Harness, config_map, create, remove};

const TTL: &str = "labels: {cleanup.kyverno.io/ttl: 90s}";

#[test]
fn an_object_goes_when_its_time_has_come() {
    let mut harness = Harness::new();
    harness.config_map("a", "one", TTL);
    harness.config_map("a", "unread", "labels: {cleanup.kyverno.io/ttl: 10ay}");
    harness.config_map("a", "past", "labels: {cleanup.kyverno.io/ttl: '2001-01-01'}");
    harness.config_map("a", "future", "labels: {cleanup.kyverno.io/ttl: '2030-01-01T000000Z'}");
    harness.observe();
    harness.pass(89);
    assert_eq!(harness.take_deleted(), ["past"]);
    harness.pass(1);
    assert_eq!(harness.take_deleted(), ["one"]);
    harness.pass(1_000_000);
    assert!(harness.has("a", "unread") && harness.has("a", "future"));
}

#[test]
fn a_changed_label_counts_although_the_news_are_late() {
    for (label, want) in [("null", true), ("1h", true), ("1s", false)] {
        let mut harness = Harness::new();
        harness.config_map("a", "one", TTL);
        harness.observe();
        let patch = format!("{{metadata: {{labels: {{cleanup.kyverno.io/ttl: {label}}}}}}}");
        harness.patch(("v1", "ConfigMap"), ("a", "one"), &patch);
        // The watch is behind.
        harness.pass(120);
        assert!(harness.has("a", "one"), "{label}: the version is another one");
        harness.observe();
        harness.pass(5);
        assert_eq!(harness.has("a", "one"), want, "{label}");
    }
}

#[test]
fn another_object_of_the_name_stays() {
    let mut harness = Harness::new();
    harness.config_map("a", "one", TTL);
    harness.observe();
    *harness.race.lock().unwrap() = Some(Box::new(|cluster, name| {
        remove(cluster, "a", name);
        create(cluster, &config_map("a", name, "labels: {}"));
    }));
    harness.pass(120);
    harness.pass(120);
    assert!(harness.has("a", "one"));
}

#[test]
fn what_is_refused_is_tried_again_ever_later() {
    let mut harness = Harness::new();
    harness.config_map("a", "one", TTL);
    harness.observe();
    harness.allowed.store(false, Ordering::SeqCst);
    for _ in 0..20 {
        harness.pass(60);
    }
    harness.allowed.store(true, Ordering::SeqCst);
    harness.pass(15 * 60);
    assert_eq!(harness.take_deleted(), ["one"]);
}

#[test]
fn objects_are_forgotten_with_their_kind_and_when_a_list_lacks_them() {
    let mut harness = Harness::new();
    harness.config_map("a", "one", TTL);
    harness.observe();
    remove(&harness.inner, "a", "one");
    harness.observe();
    harness.pass(200);
    assert_eq!(harness.take_deleted(), [""; 0]);
}
