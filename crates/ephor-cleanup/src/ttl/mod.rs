//! The label `cleanup.kyverno.io/ttl`: objects that are deleted when their time has come.
//!
//! Every kind that the account may list, watch and delete is watched, labelled objects only and only their metadata.
//! [`state`] holds what is needed of each object in one queue of timers; nothing is polled. [`controller`] deletes what
//! is due, one object a step, without a clock or threads. [`kinds`] says which kinds are watched: they and the
//! permissions come and go.

pub mod controller;
pub mod kinds;
pub mod state;
