//! Decides what a generate rule does for its trigger in one reconciliation.
//!
//! [`Inputs::decide`] takes what is known before the evaluation and returns a [`Decision`]; [`Inputs::view`] chooses
//! the request that the rule is evaluated with. Both are pure. The reconciler collects the inputs and carries out the
//! decision.

use ephor_engine::policy::Operation;
use ephor_expr::Str;
use ephor_runtime::traits::{Traits, Varying};

use super::judge::View;
use crate::plan::Cause;

/// What is known about a rule, its trigger and the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inputs {
    /// Whether the rule keeps its downstreams in sync.
    pub(super) synchronize: bool,
    /// What the rule depends on besides its trigger.
    pub(super) traits: Traits,
    /// Whether the rule applies to the trigger without a request.
    pub(super) activation: Activation,
    /// Whether the rule has downstreams for the trigger. Those of events do not count.
    pub(super) owns: bool,
    /// The trigger.
    pub(super) trigger: Trigger,
    /// The request that names the rule.
    pub(super) request: Option<Request>,
}

/// Whether a rule applies to a trigger without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    /// The trigger is older than the rule.
    Inactive,
    /// The trigger was created after the rule, or the rule has downstreams for it.
    Active,
    /// An event brought the rule into force: a request, or new labels of a namespace.
    Forced,
}

/// The state of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger {
    /// It exists.
    Live,
    /// It does not exist, or is being deleted.
    Gone,
    /// The API server rejected the request.
    NotPersisted,
}

/// What a request says about a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    /// The operation; `None` for a request without an admission request.
    pub(super) operation: Option<Operation>,
    /// Whether the admission request is for a subresource.
    pub(super) subresource: bool,
    /// Whether the request deletes the rule's downstreams.
    pub(super) released: bool,
    /// Whether Ephor's admission wrote it, before the API server stored the object.
    pub(super) announced: bool,
}

impl Request {
    /// Whether the request is an event that leaves no trigger to observe: a deletion, a CONNECT or a subresource.
    fn is_event(self) -> bool {
        self.operation
            .is_some_and(|operation| matches!(operation, Operation::Delete | Operation::Connect) || self.subresource)
    }
}

/// What a rule does for its trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// The reconciliation is not about this rule.
    Ignore,
    /// Leaves the downstreams as they are.
    Keep,
    /// Leaves the downstreams as they are, and updates their annotations to the present settings of the rule.
    UpdateAnnotations,
    /// Removes the downstreams.
    Remove(Cause),
    /// Fails the request, because its trigger does not exist.
    FailRequest,
    /// Evaluates the rule.
    Evaluate {
        /// Whether the request must be stored for later evaluations.
        remember: bool,
    },
}

/// The requests that a rule can be evaluated with.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    /// Whether the current request is older than the stored one.
    pub(super) superseded: bool,
    /// The name of the stored request.
    pub(super) remembered: Option<Str>,
    /// Whether an update created the present downstreams.
    pub(super) made_by_update: bool,
}

impl Inputs {
    /// Decides what the rule does.
    pub(super) fn decide(&self) -> Decision {
        let Some(request) = self.request else { return self.without_request() };
        if request.released && !self.synchronize {
            return Decision::Keep;
        }
        if request.released && self.traits.event_bound {
            return Decision::Remove(Cause::TriggerUnmatched);
        }
        match self.trigger {
            Trigger::Live => Decision::Evaluate { remember: self.remembers() },
            Trigger::Gone if request.is_event() && !request.released => Decision::Evaluate { remember: false },
            Trigger::Gone if self.synchronize => self.trigger_gone(),
            // Admission can see two creations of one name at the same time, and one is never stored. So a request that
            // precedes its object does nothing here. A request of another writer names a stored object and fails.
            Trigger::Gone => match request.operation {
                Some(Operation::Create | Operation::Update) if !request.announced => Decision::FailRequest,
                _ => Decision::Keep,
            },
            Trigger::NotPersisted => Decision::Keep,
        }
    }

    fn without_request(&self) -> Decision {
        let relabelled = self.activation == Activation::Forced && self.traits.namespace_selector;
        if !self.synchronize && !relabelled {
            return Decision::Ignore;
        }
        match self.trigger {
            Trigger::Live if self.activation == Activation::Inactive => Decision::Keep,
            Trigger::Live => Decision::Evaluate { remember: false },
            Trigger::Gone if self.synchronize => self.trigger_gone(),
            Trigger::Gone | Trigger::NotPersisted => Decision::Keep,
        }
    }

    /// A synchronizing rule whose trigger was deleted. One that matches deletions made its downstreams because of that.
    fn trigger_gone(&self) -> Decision {
        if self.traits.on_delete { Decision::UpdateAnnotations } else { Decision::Remove(Cause::TriggerGone) }
    }

    /// Whether the rule reads data of the request that no watch delivers, so that later evaluations need the request.
    fn remembers(&self) -> bool {
        let Some(request) = self.request.filter(|request| !request.is_event()) else { return false };
        let remembers = request.operation.is_some_and(|operation| self.traits.remembers(operation));
        self.synchronize && self.trigger == Trigger::Live && remembers
    }

    /// Chooses the request that the rule is evaluated with. `None` if the rule needs one and there is none.
    pub(super) fn view(&self, requests: Requests) -> Option<View> {
        let remembers = self.remembers();
        let current = self.request.is_some() && !(remembers && requests.superseded);
        if !current && self.traits.event_bound && requests.remembered.is_none() {
            return None;
        }
        // A synchronizing rule with downstreams is evaluated as for a watch event, so that both give the same result.
        // If the names are random, only the seed of the request gives the same names again.
        let follows_trigger = self.synchronize && self.trigger == Trigger::Live;
        let reads_request = remembers || self.traits.event_bound || self.traits.varying == Varying::Identity;
        let as_watched = follows_trigger && self.owns && !reads_request;
        Some(match requests.remembered {
            _ if current && !as_watched => View::Request,
            Some(name) => View::Remembered(name),
            None if requests.made_by_update => View::Updated,
            None => View::Created,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNOUNCED: Request = Request { operation: None, subresource: false, released: false, announced: true };

    fn request(operation: Operation) -> Request {
        Request { operation: Some(operation), ..ANNOUNCED }
    }

    fn written_by_others(operation: Operation) -> Request {
        Request { operation: Some(operation), announced: false, ..ANNOUNCED }
    }

    fn released(operation: Operation) -> Request {
        Request { operation: Some(operation), released: true, ..ANNOUNCED }
    }

    /// A synchronizing rule whose trigger exists and is younger than the rule.
    fn synchronizing() -> Inputs {
        Inputs {
            synchronize: true,
            traits: Traits::default(),
            activation: Activation::Active,
            owns: false,
            trigger: Trigger::Live,
            request: None,
        }
    }

    /// The same rule without `synchronize`.
    fn once() -> Inputs {
        Inputs { synchronize: false, ..synchronizing() }
    }

    fn with(inputs: Inputs, change: impl FnOnce(&mut Traits)) -> Inputs {
        let mut traits = inputs.traits;
        change(&mut traits);
        Inputs { traits, ..inputs }
    }

    #[test]
    fn the_decision_follows_from_rule_trigger_and_request() {
        use Decision::{Evaluate, FailRequest, Ignore, Keep, Remove, UpdateAnnotations};
        use Operation::{Connect, Create, Delete, Update};
        use Trigger::{Gone, NotPersisted};
        let (forced, inactive) = (Activation::Forced, Activation::Inactive);
        let event_bound = with(synchronizing(), |traits| traits.event_bound = true);
        let by_operation = with(synchronizing(), |traits| traits.by_operation = true);
        let on_delete = with(synchronizing(), |traits| traits.on_delete = true);
        let selecting = with(once(), |traits| traits.namespace_selector = true);
        let status = Some(Request { operation: Some(Update), subresource: true, ..ANNOUNCED });
        let evaluate = Evaluate { remember: false };
        for (name, inputs, want) in [
            ("a watch event of a rule without synchronize", once(), Ignore),
            ("a request for a rule without synchronize", Inputs { request: Some(request(Create)), ..once() }, evaluate),
            ("other labels, without a selector", Inputs { activation: forced, ..once() }, Ignore),
            ("other labels, with a selector", Inputs { activation: forced, ..selecting }, evaluate),
            ("a selector, without other labels", selecting, Ignore),
            ("a watch event", synchronizing(), evaluate),
            ("a trigger older than the rule", Inputs { activation: inactive, ..synchronizing() }, Keep),
            (
                "a request about an older trigger",
                Inputs { activation: inactive, request: Some(request(Update)), ..synchronizing() },
                evaluate,
            ),
            ("a deleted trigger", Inputs { trigger: Gone, ..synchronizing() }, Remove(Cause::TriggerGone)),
            ("a deleted trigger of a rule for deletions", Inputs { trigger: Gone, ..on_delete }, UpdateAnnotations),
            (
                "a deletion for a rule for deletions",
                Inputs { trigger: Gone, request: Some(request(Delete)), ..on_delete },
                evaluate,
            ),
            ("a shell in a Pod", Inputs { trigger: Gone, request: Some(request(Connect)), ..once() }, evaluate),
            ("a status of a deleted object", Inputs { trigger: Gone, request: status, ..once() }, evaluate),
            ("a creation that lost its name", Inputs { trigger: Gone, request: Some(request(Create)), ..once() }, Keep),
            (
                "a request of another writer without a trigger",
                Inputs { trigger: Gone, request: Some(written_by_others(Create)), ..once() },
                FailRequest,
            ),
            (
                "the same for a synchronizing rule",
                Inputs { trigger: Gone, request: Some(written_by_others(Create)), ..synchronizing() },
                Remove(Cause::TriggerGone),
            ),
            (
                "a rejected request",
                Inputs { trigger: NotPersisted, request: Some(request(Create)), ..synchronizing() },
                Keep,
            ),
            ("a release without synchronize", Inputs { request: Some(released(Update)), ..once() }, Keep),
            ("a release", Inputs { request: Some(released(Update)), ..synchronizing() }, evaluate),
            (
                "a release of a rule that needs its request",
                Inputs { request: Some(released(Update)), ..event_bound },
                Remove(Cause::TriggerUnmatched),
            ),
            (
                "a release by a deletion",
                Inputs { trigger: Gone, request: Some(released(Delete)), ..synchronizing() },
                Remove(Cause::TriggerGone),
            ),
            (
                "a rule that reads its request",
                Inputs { request: Some(request(Create)), ..event_bound },
                Evaluate { remember: true },
            ),
            ("an update, read", Inputs { request: Some(request(Update)), ..by_operation }, Evaluate { remember: true }),
            ("a creation, not read", Inputs { request: Some(request(Create)), ..by_operation }, evaluate),
            ("an update of the status", Inputs { request: status, ..event_bound }, evaluate),
            (
                "a rule without synchronize that reads its request",
                Inputs { synchronize: false, request: Some(request(Create)), ..event_bound },
                evaluate,
            ),
        ] {
            assert_eq!(inputs.decide(), want, "{name}");
        }
    }

    #[test]
    fn the_view_is_that_of_the_request_that_counts() {
        use Operation::{Create, Update};
        let event_bound = with(synchronizing(), |traits| traits.event_bound = true);
        let random_names = with(synchronizing(), |traits| traits.varying = Varying::Identity);
        let none = Requests { superseded: false, remembered: None, made_by_update: false };
        let stored = Requests { remembered: Some("ur-a".into()), ..none.clone() };
        let late = Requests { superseded: true, ..stored.clone() };
        let updated = Requests { made_by_update: true, ..none.clone() };
        let remembered = Some(View::Remembered("ur-a".into()));
        let (owning, asked) = (Inputs { owns: true, ..synchronizing() }, Some(request(Update)));
        for (name, inputs, requests, want) in [
            ("no request", synchronizing(), &none, Some(View::Created)),
            ("a downstream of an update", synchronizing(), &updated, Some(View::Updated)),
            ("a stored request", event_bound, &stored, remembered.clone()),
            ("a rule that needs a request, without one", event_bound, &none, None),
            ("a newer request", Inputs { request: Some(request(Create)), ..event_bound }, &stored, Some(View::Request)),
            ("a late request", Inputs { request: Some(request(Create)), ..event_bound }, &late, remembered.clone()),
            ("a first request", Inputs { request: asked, ..synchronizing() }, &none, Some(View::Request)),
            ("a request for present downstreams", Inputs { request: asked, ..owning }, &none, Some(View::Created)),
            ("the same, made by an update", Inputs { request: asked, ..owning }, &updated, Some(View::Updated)),
            ("random names", Inputs { owns: true, request: asked, ..random_names }, &none, Some(View::Request)),
            ("a rule without synchronize", Inputs { owns: true, request: asked, ..once() }, &none, Some(View::Request)),
        ] {
            assert_eq!(inputs.view(requests.clone()), want, "{name}");
        }
    }
}
