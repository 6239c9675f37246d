//! Background work as users meet it: the action tables, over HTTP, on `ephor sandbox` and on a real API server with the
//! roles beside it.
//!
//! All cells are played on one server, side by side.

mod beat;
mod cells;
mod chains;
mod copies;
mod permissions;
mod plan;
mod processes;
mod remote;

use cells::play_all;
use processes::{Roles, Sandbox};

#[test]
fn every_cell_of_the_action_tables_holds_in_the_sandbox() {
    let sandbox = Sandbox::start();
    play_all(&sandbox.kubeconfig(), 16);
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn every_cell_of_the_action_tables_holds_on_an_api_server() {
    let mut roles = Roles::start();
    play_all(&roles.plane.kubeconfig(), 16);
    roles.assert_running();
}
