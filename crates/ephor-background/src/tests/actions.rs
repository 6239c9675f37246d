//! The action tables on a cluster in memory.

use ephor_expr::Value;

use super::harness::Harness;
use super::preview::PlannedBed;
pub(super) use table::{TestEnv, cells};

#[path = "../../../../tests/background/actions.rs"]
mod table;

pub(super) const TABLE: &str = include_str!("../../../../tests/background/actions.yaml");

impl TestEnv for Harness {
    fn apply(&mut self, object: &Value) {
        self.apply_object(object);
    }

    fn delete(&mut self, object: &Value) {
        Harness::delete(self, &object.to_json());
    }

    fn read(&self, object: &Value) -> Option<Value> {
        Harness::read(self, object)
    }

    fn rest(&mut self) {
        Harness::settle(self);
    }

    fn settle(&mut self, _done: &dyn Fn(&Self) -> bool) {
        Harness::settle(self);
    }
}

impl TestEnv for PlannedBed {
    fn apply(&mut self, object: &Value) {
        PlannedBed::apply(self, object);
    }

    fn delete(&mut self, object: &Value) {
        PlannedBed::delete(self, object);
    }

    fn read(&self, object: &Value) -> Option<Value> {
        self.harness.read(object)
    }

    fn rest(&mut self) {}

    fn settle(&mut self, _done: &dyn Fn(&Self) -> bool) {}
}

fn play(admission: bool) {
    let mut wrong = Vec::new();
    for cell in cells(TABLE) {
        let mut harness = Harness::new();
        harness.admission.close(!admission);
        if !admission && !cell.synchronize {
            // Without synchronize nothing happens but what a request asks for.
            continue;
        }
        if let Err(error) = cell.play(&mut harness) {
            wrong.push(format!("{cell}: {error}"));
        }
        assert_eq!(harness.pending_requests(), 0, "requests are left: {cell:?}");
    }
    assert!(wrong.is_empty(), "{} cells:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_cell_of_the_action_tables_holds() {
    play(true);
}

#[test]
fn synchronizing_cells_hold_without_any_request() {
    play(false);
}

#[test]
fn every_cell_happens_as_it_was_planned() {
    let mut wrong = Vec::new();
    let mut planned = 0;
    for cell in cells(TABLE) {
        let mut harness = PlannedBed::new();
        if let Err(error) = cell.play(&mut harness) {
            wrong.push(format!("{cell}: {error}"));
        }
        planned += harness.planned;
        wrong.extend(harness.differences.iter().map(|difference| format!("{cell}: {difference}")));
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    assert!(planned > 200, "only {planned} changes");
}
