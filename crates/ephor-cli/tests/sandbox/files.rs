//! `--watch`: the sandbox follows its files.

use ephor_cluster::Cluster as _;

use crate::process::{Sandbox, eventually};

fn map(name: &str) -> String {
    format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n")
}

#[test]
fn edited_files_are_applied_and_what_leaves_them_is_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("maps.yaml");
    std::fs::write(&file, map("first") + &map("second")).expect("a file");
    let sandbox = Sandbox::start(&["--watch", file.to_str().expect("a path")]);
    let cluster = sandbox.cluster();
    let maps = cluster.resolve("v1", "ConfigMap").expect("a kind");
    let get = |name: &str| cluster.get(&maps, Some("default"), name).ok();
    assert!(get("first").is_some() && get("second").is_some());

    // A file that is not YAML changes nothing.
    std::fs::write(&file, "{").expect("a file");
    std::fs::write(&file, map("second").replace("a: b", "a: c") + &map("third")).expect("a file");
    eventually("the edit is applied", || get("third"));
    let second = get("second").expect("it stays");
    assert_eq!(second.str_at(&["data", "a"]), Some("c"));
    assert!(get("first").is_none());
    sandbox.stop();
}
