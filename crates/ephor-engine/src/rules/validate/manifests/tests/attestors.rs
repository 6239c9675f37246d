//! Who has signed, and whether they are enough.

use super::fixtures::{
    ANNA, BERT, BY_ANNA, BY_BERT, MESSAGE, failure, judge, judge_with, keys, passes, service, service_of,
    signed_by_anna, signed_by_both, with,
};

#[test]
fn an_unsigned_object_fails() {
    let set = format!("[{{entries: [{}]}}]", keys(&[ANNA]));
    for annotations in [&[][..], &[("message", MESSAGE)], &[("signature", BY_ANNA)]] {
        assert_eq!(
            failure(judge(&set, &service(annotations))),
            "manifest verification failed; verifiedCount 0; requiredCount 1; message .attestors[0].entries[0].keys: \
             no signature found in the annotations `cosign.sigstore.dev/signature` and `cosign.sigstore.dev/message`"
        );
    }
}

#[test]
fn a_signature_of_the_key_passes_and_of_another_key_fails() {
    let anna = format!("[{{entries: [{}]}}]", keys(&[ANNA]));
    let bert = format!("[{{entries: [{}]}}]", keys(&[BERT]));
    assert!(passes(&judge(&anna, &signed_by_anna())));
    assert_eq!(
        failure(judge(&bert, &signed_by_anna())),
        "manifest verification failed; verifiedCount 0; requiredCount 1; message .attestors[0].entries[0].keys: \
         failed to verify signature."
    );
}

#[test]
fn every_signature_of_an_object_counts() {
    let bert = format!("[{{entries: [{}]}}]", keys(&[BERT]));
    assert!(passes(&judge(&bert, &signed_by_both())));
    let only_second = service(&[("message", MESSAGE), ("signature_1", BY_BERT)]);
    assert!(passes(&judge(&bert, &only_second)));
    let other_name = service(&[("message", MESSAGE), ("signature_x", BY_BERT)]);
    assert!(failure(judge(&bert, &other_name)).contains("no signature found"));
}

#[test]
fn count_says_how_many_of_a_set() {
    let set = |count: &str| format!("[{{{count} entries: [{}, {}]}}]", keys(&[ANNA]), keys(&[BERT]));
    for (count, one, two) in [("", false, true), ("count: 0,", false, true), ("count: 1,", true, true)] {
        assert_eq!(passes(&judge(&set(count), &signed_by_anna())), one, "{count:?}");
        assert_eq!(passes(&judge(&set(count), &signed_by_both())), two, "{count:?}");
    }
    assert!(failure(judge(&set("count: 2,"), &signed_by_anna())).starts_with(
        "manifest verification failed; verifiedCount 1; requiredCount 2; message .attestors[0].entries[1].keys: "
    ));
}

#[test]
fn each_key_of_an_entry_is_an_attestor() {
    let set = |count: &str| format!("[{{{count} entries: [{}]}}]", keys(&[ANNA, BERT]));
    assert!(!passes(&judge(&set(""), &signed_by_anna())));
    assert!(passes(&judge(&set("count: 1,"), &signed_by_anna())));
    assert!(passes(&judge(&set(""), &signed_by_both())));
}

#[test]
fn all_sets_must_be_satisfied() {
    let sets = format!("[{{entries: [{}]}}, {{entries: [{}]}}]", keys(&[ANNA]), keys(&[BERT]));
    assert!(passes(&judge(&sets, &signed_by_both())));
    assert!(failure(judge(&sets, &signed_by_anna())).contains("message .attestors[1].entries[0].keys: "));
}

#[test]
fn a_set_inside_a_set_counts_as_one() {
    let inner = format!("{{attestor: {{count: 1, entries: [{}, {}]}}}}", keys(&[ANNA]), keys(&[BERT]));
    let sets = format!("[{{entries: [{inner}]}}]");
    assert!(passes(&judge(&sets, &signed_by_anna())));
    let text = failure(judge(&sets, &service(&[])));
    assert!(text.contains("message .attestors[0].entries[0].attestor.entries[0].keys: "), "{text}");
}

#[test]
fn an_attestor_may_want_annotations() {
    let entry = keys(&[ANNA]).replacen('{', "{annotations: {team: shop}, ", 1);
    let sets = format!("[{{entries: [{entry}]}}]");
    assert!(failure(judge(&sets, &signed_by_anna())).contains("annotation `team` is not `shop`"));
    let body = format!("{{attestors: {sets}, ignoreFields: [{{fields: [metadata.annotations.team]}}]}}");
    let labelled = with(signed_by_anna(), &["metadata", "annotations", "team"], "shop");
    assert!(passes(&judge_with(&body, &labelled)));
}

#[test]
fn the_annotations_may_have_another_domain() {
    let body = format!("{{annotationDomain: shop.example, attestors: [{{entries: [{}]}}]}}", keys(&[ANNA]));
    let own = service_of("shop.example", &[("message", MESSAGE), ("signature", BY_ANNA)]);
    assert!(passes(&judge_with(&body, &own)));
    assert!(failure(judge_with(&body, &signed_by_anna())).contains("`shop.example/signature`"));
}

#[test]
fn a_pass_says_who_was_asked_for() {
    let outcome = judge(&format!("[{{entries: [{}]}}]", keys(&[ANNA])), &signed_by_anna());
    let text = "verified manifest signatures; manifest verification succeeded; verifiedCount 1; requiredCount 1; \
                message signed by a valid signer";
    assert_eq!(outcome, super::super::ManifestOutcome::Pass { message: text.into() });
}
