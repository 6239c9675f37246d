//! The action tables on a server.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ephor_expr::Value;

use crate::beat::Heart;
use crate::plan::assert_at_rest;
use crate::remote::{Remote, TIMEOUT, within};
use table::{Cell, TestEnv, cells};

#[path = "../../../../tests/background/actions.rs"]
mod table;

const TABLE: &str = include_str!("../../../../tests/background/actions.yaml");

/// What one cell stands on.
struct Patch<'h> {
    remote: Remote,
    heart: &'h Heart,
    /// The cell's policy, while there is one.
    policy: Option<Value>,
    /// All names that its policies had, as requests have them.
    policies: BTreeSet<String>,
}

fn is_policy(object: &Value) -> bool {
    object.str_at(&["apiVersion"]) == Some("kyverno.io/v1")
}

impl TestEnv for Patch<'_> {
    fn apply(&mut self, object: &Value) {
        self.remote.apply(object).unwrap_or_else(|error| panic!("{error}: {object:?}"));
        if is_policy(object) {
            let text = |key| object.str_at(&["metadata", key]);
            let namespace = text("namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
            self.policies.insert(format!("{namespace}{}", text("name").unwrap_or_default()));
            self.policy = Some(object.clone());
        }
    }

    fn delete(&mut self, object: &Value) {
        self.remote.delete(object).unwrap_or_else(|error| panic!("{error}: {object:?}"));
        if is_policy(object) {
            self.policy = None;
        }
    }

    fn read(&self, object: &Value) -> Option<Value> {
        self.remote.read(object)
    }

    fn rest(&mut self) {
        if let Some(policy) = &self.policy {
            assert!(within(TIMEOUT, || self.remote.is_ready(policy)), "the policy is not ready");
        }
        self.heart.wait();
        let is_done = || {
            let is_open = |policy: &String| self.remote.open_requests(Some(policy)).contains_key(policy);
            !self.policies.iter().any(is_open)
        };
        if !is_done() {
            assert!(within(TIMEOUT, is_done), "requests are left: {:?}", self.remote.open_requests(None));
            self.heart.wait();
        }
    }

    fn settle(&mut self, done: &dyn Fn(&Self) -> bool) {
        within(TIMEOUT, || done(self));
        self.rest();
    }
}

/// Plays all cells on the server of a kubeconfig, several at a time.
pub(crate) fn play_all(kubeconfig: &Path, at_once: usize) {
    let remote = Remote::connect(kubeconfig);
    let heart = Heart::start(&remote);
    let cells = cells(TABLE);
    assert!(cells.len() > 100, "there is a table");
    let env = || Patch { remote: remote.clone(), heart: &heart, policy: None, policies: BTreeSet::new() };
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let played = catch_unwind(AssertUnwindSafe(|| cell.play(&mut env())));
                    let error = played.unwrap_or_else(|_| Err("see the panic above".to_owned()));
                    if let Err(error) = error {
                        wrong.lock().unwrap().push(format!("{cell}: {error}"));
                    }
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    // What others did meanwhile has changed nothing.
    heart.wait();
    let holds = |cell: &&Cell| !wrong.iter().any(|line| line.starts_with(&format!("{}:", cell.number)));
    let late =
        cells.iter().filter(holds).filter_map(|cell| Some(format!("{cell}: in the end {}", cell.holds(&env()).err()?)));
    let late: Vec<String> = late.collect();
    wrong.extend(late);
    // The heart's own beats go on; its policies have other names.
    let left = remote.open_requests(None).into_iter().filter(|(policy, _)| policy.contains("policy-"));
    wrong.extend(left.map(|(policy, state)| format!("{policy}: a request is {state}")));
    if wrong.is_empty() {
        assert_at_rest(kubeconfig);
    }
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), cells.len(), wrong.join("\n"));
}
