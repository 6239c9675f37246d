//! Rules on signed manifests, as far as data cannot say it; the rest is in `tests/cases/validate/manifests.yaml`.

use crate::support::{self, Trial, value};

const RULE: &str = r"
validate:
  manifests:
    attestors:
    - entries:
      - keys:
          publicKeys: |-
            -----BEGIN PUBLIC KEY-----
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEtKA+jcIdFm06sGKf8yN3ZgV+2T+y
            ytZFE6dB1bcVeKJovbuGRNl0aUWRQvwGYIr6Npe5IQjKrT8m6WQ8KAtduw==
            -----END PUBLIC KEY-----
";

#[test]
fn a_dry_run_passes() {
    let mut review = support::review(&value("{}"));
    review.attributes.insert("dryRun", true);
    let ran = Trial::new(&[support::policy_of_rule(&value(RULE))], review).run();
    assert_eq!(ran.lines(), ["r pass allowed because of DryRun request"]);
}
