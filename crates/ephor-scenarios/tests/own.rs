//! The runner on scenarios of our own, without an engine.
//!
//! These need the executables of a control plane: `cargo xtask cluster build`, then
//! `cargo test -p ephor-scenarios -- --ignored`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ephor_scenarios::engine::{Flavour, Subject};
use ephor_scenarios::run::{Failure, Place, run};
use ephor_scenarios::scenario::Scenario;
use ephor_scenarios::stage::{Folders, Stage};

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/own").join(name)
}

fn play(stage: &Stage, name: &str) -> Result<(), Failure> {
    let scenario = Scenario::read(&own(name).join("chainsaw-test.yaml")).unwrap();
    run(&scenario, &Place { api: stage.api(), environment: stage.environment(), patience: Duration::from_secs(30) })
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn scenarios_run_fail_with_a_reason_and_leave_nothing_behind() {
    let definitions = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/ephor/files/crds")];
    let mut stage = Stage::start(&Subject::Nothing, Flavour::Standard, &Folders { definitions }).unwrap();
    // Twice: what the first run left would be in the way of the second.
    for _ in 0..2 {
        assert_eq!(play(&stage, "everything"), Ok(()));
        assert!(stage.clean().unwrap());
    }
    let api = stage.api();
    let namespaces = api.kind("v1", "Namespace").unwrap();
    let error = api.get(&namespaces, None, "left-behind").unwrap_err();
    assert!(error.is_not_found(), "{error}");
    let default = api.get(&namespaces, None, "default").unwrap();
    assert_eq!(default.at(&["metadata", "labels", "touched"]), None);
    let error = api.kind("example.com/v1", "Leftover").unwrap_err().to_string();
    assert_eq!(error, r#"no matches for kind "Leftover" in version "example.com/v1""#);

    let failure = play(&stage, "wrong").unwrap_err();
    assert_eq!((failure.step.as_str(), failure.operation.as_str()), ("look", "assert Namespace default"));
    assert_eq!(
        failure.problem,
        "Namespace default:\n  \
         metadata.labels.kubernetes.io/metadata.name: expected \"other\", found \"default\"\n  \
         spec.finalizers: expected 2 items, found 1: [\"kubernetes\"]"
    );
}
