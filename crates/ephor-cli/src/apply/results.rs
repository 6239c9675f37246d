//! What a run came to: what the output formats show.

use ephor_engine::diagnostic::Diagnostic;
use ephor_expr::value::Path;

use super::plan::{Plan, PolicySummary};
use super::row::Row;
use crate::load::Refused;
use crate::locate::Located;
use crate::tally::Tally;

/// What a run came to.
#[derive(Debug)]
pub struct Results {
    /// What was run.
    pub plan: Plan,
    /// How many resources were judged.
    pub resources: u64,
    /// How many exceptions there were.
    pub exceptions: usize,
    /// All verdicts; refused policies count as errors.
    pub tally: Tally,
    /// The rows that were kept.
    pub rows: Vec<Row>,
    /// Changed and created objects, printed.
    pub changes: String,
    /// Policies that were refused.
    pub refused: Vec<Refused>,
    /// What could not be loaded, and warnings.
    pub findings: Vec<Located>,
    /// Whether something could not be done.
    pub could_not: bool,
}

impl Results {
    /// Nothing yet, of this plan.
    pub fn of(plan: Plan) -> Self {
        Self {
            plan,
            resources: 0,
            exceptions: 0,
            tally: Tally::default(),
            rows: Vec::new(),
            changes: String::new(),
            refused: Vec::new(),
            findings: Vec::new(),
            could_not: false,
        }
    }

    /// The policy of a row's policy.
    pub fn policy(&self, row: &Row) -> Option<&PolicySummary> {
        self.plan.policies.get(row.policy)
    }
}

impl Row {
    /// Where the row's rule stands in its policy: the place of the error if there is one, else of the rule.
    pub fn place(&self, policy: &PolicySummary) -> Located {
        self.fault(policy).unwrap_or_else(|| {
            let rule = policy.program.as_ref().and_then(|program| program.rules.get(self.index));
            let path = rule.map_or_else(|| Path::root().key("spec"), |rule| rule.path.clone());
            Located::of_diagnostic(Diagnostic::warning("rule", path, self.message.as_str()), &policy.origin)
        })
    }

    /// Where in the policy an error arose, and what is known about it.
    pub fn fault(&self, policy: &PolicySummary) -> Option<Located> {
        let fault = self.detail.as_ref()?.fault.as_ref()?;
        let mut finding = Diagnostic::error("rule-error", fault.path.clone(), self.message.as_str());
        finding.offset = fault.offset;
        finding.help.clone_from(&fault.help);
        Some(Located::of_diagnostic(finding, &policy.origin))
    }

    /// The message, or what upstream says when a rule has none.
    pub fn text(&self) -> &str {
        if self.message.is_empty() { "validation failed" } else { &self.message }
    }
}
