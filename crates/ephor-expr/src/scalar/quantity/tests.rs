//! Observed values and properties of quantities.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

fn q(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

fn canonical(text: &str) -> String {
    Quantity::parse(text).map_or_else(|e| format!("error: {e:?}"), |q| q.to_string())
}

#[test]
fn texts_have_the_canonical_form_of_kubernetes() {
    for (text, expected) in [
        ("0", "0"),
        ("-0", "0"),
        ("0Ki", "0"),
        // No digits count as 0.
        ("Ki", "0"),
        ("m", "0"),
        ("+", "0"),
        (".", "0"),
        ("1.", "1"),
        (".5", "500m"),
        ("+5", "5"),
        ("05", "5"),
        ("1.50", "1500m"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("1500u", "1500u"),
        ("1.5Ki", "1536"),
        ("0.5Mi", "512Ki"),
        ("0.1Gi", "107374182400m"),
        ("1.1Gi", "1181116006400m"),
        ("1023Ki", "1023Ki"),
        ("1024Ki", "1Mi"),
        ("-1024Ki", "-1Mi"),
        ("1000Ki", "1000Ki"),
        ("0.0005Ki", "512m"),
        ("0.0000000001Ki", "103n"),
        ("1e3", "1e3"),
        ("1E+3", "1e3"),
        ("1e1", "10"),
        ("1.5e3", "1500"),
        ("1e-9", "1e-9"),
        ("1e-8", "10e-9"),
        ("1e-10", "1e-9"),
        ("-1e-10", "-1e-9"),
        ("1.2e-9", "2e-9"),
        ("0.1n", "1n"),
        ("1.5n", "2n"),
        ("1e21", "1e21"),
        ("0.12345678901", "123456790n"),
        ("9999999999E", "9999999999E"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("10Ei", "9223372036854775807"),
        ("-10Ei", "-9223372036854775807"),
        ("99999999999999999999999999999999999999Ei", "9223372036854775807"),
        ("3987382287534248691.94248787Pi", "9223372036854775807"),
        ("9007199254740992.8409748Pi", "9223372036854775807"),
        ("7.5Ei", "7680Pi"),
        // Upstream prints 1: it has no suffix left.
        ("1000E", "1000E"),
        ("0.00000000000000000000000000000000000000000000000001", "1n"),
        ("", "error: Form"),
        (" 1", "error: Form"),
        ("1 ", "error: Form"),
        ("1_000", "error: Form"),
        ("0x10", "error: Form"),
        ("1.1.1", "error: Form"),
        ("1h", "error: Form"),
        ("--1", "error: Suffix"),
        ("nginx", "error: Form"),
        ("Pi", "error: Numeric"),
        ("e-10", "error: Numeric"),
        ("e", "error: Suffix"),
        ("1e", "error: Suffix"),
        ("1kk", "error: Suffix"),
        ("1mi", "error: Suffix"),
        ("1e3k", "error: Form"),
        ("1e3000000000", "error: Suffix"),
        ("12345678901234567890123456789012345678901234567890", "error: Numeric"),
    ] {
        assert_eq!(canonical(text), expected, "{text}");
    }
}

#[test]
fn order_is_that_of_the_numbers() {
    for (a, b, order) in [
        ("1Ki", "1024", Ordering::Equal),
        ("5.0", "5", Ordering::Equal),
        ("500m", "0.5", Ordering::Equal),
        ("1Gi", "1000Mi", Ordering::Greater),
        ("1.10", "1.9", Ordering::Less),
        ("1G", "1Gi", Ordering::Less),
        ("1e3", "999", Ordering::Greater),
        ("-1", "-2", Ordering::Greater),
        ("-1", "1n", Ordering::Less),
        ("0", "0e5", Ordering::Equal),
        ("1e1000000", "1e999999", Ordering::Greater),
        ("1e1000000", "99999999999999999999", Ordering::Greater),
        ("-1e1000000", "1", Ordering::Less),
        ("1234567890123456789012345678", "1234567890123456789012345.678k", Ordering::Equal),
    ] {
        assert_eq!(q(a).cmp(&q(b)), order, "{a} {b}");
        assert_eq!(q(b).cmp(&q(a)), order.reverse(), "{b} {a}");
    }
}

#[test]
fn sums_keep_the_first_format() {
    for (a, b, sum, difference) in [
        ("1Ki", "24", "1048", "1k"),
        ("512Ki", "512Ki", "1Mi", "0"),
        ("1k", "1", "1001", "999"),
        ("0.5", "0", "500m", "500m"),
        ("1.1Gi", "0", "1181116006400m", "1181116006400m"),
        ("0", "1Mi", "1Mi", "-1Mi"),
        ("1Gi", "1Gi", "2Gi", "0"),
        ("2Ki", "1Ki", "3Ki", "1Ki"),
        ("5m", "5m", "10m", "0"),
        ("1e3", "1", "1001", "999"),
    ] {
        assert_eq!(q(a).add(&q(b)).unwrap().to_string(), sum, "{a} + {b}");
        assert_eq!(q(a).sub(&q(b)).unwrap().to_string(), difference, "{a} - {b}");
    }
    assert!(q("1e1000").add(&q("1")).is_none());
}

#[test]
fn products_and_quotients_by_numbers_keep_the_format() {
    for (a, factor, expected) in [
        ("1e3", 2.0, "2e3"),
        ("500m", 2.0, "1"),
        ("1Ki", 0.5, "512"),
        ("1Mi", 0.5, "512Ki"),
        ("3Ki", 2.0, "6Ki"),
        ("1", 1.0 / 3.0, "333333334n"),
        // Upstream prints 6519466679705600 here: finer than a nano it has no suffix left.
        ("19.1Ki", 1.0 / 3.0, "6519466679706n"),
    ] {
        assert_eq!(q(a).mul_f64(factor).unwrap().to_string(), expected, "{a} * {factor}");
    }
    for (a, divisor, expected) in [
        ("1.5", 2.0, "700m"),
        ("1500m", 2.0, "750m"),
        ("10", 3.5, "2800m"),
        ("-7", 2.0, "-3"),
        ("5G", 3_000_000.0, "0"),
        ("5000000000", 3_000_000.0, "1666"),
        ("1", 3.0, "0"),
        ("10", 4.0, "2"),
        ("1Gi", 2.0, "512Mi"),
        ("1.5Ki", 7.0, "219428571428n"),
    ] {
        assert_eq!(q(a).div_f64(divisor).unwrap().to_string(), expected, "{a} / {divisor}");
    }
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(q("1").mul_f64(bad).is_none());
        assert!(q("1").div_f64(bad).is_none());
    }
    assert!(q("1").div_f64(0.0).is_none());
}

#[test]
fn quotients_and_remainders_of_quantities() {
    assert_eq!(q("1").ratio(&q("3")), Some(1.0 / 3.0));
    assert_eq!(q("1Gi").ratio(&q("1Mi")), Some(1024.0));
    assert_eq!(q("1").ratio(&q("0")), None);
    assert_eq!(q("0e1000").ratio(&q("5")), Some(0.0));
    assert_eq!(q("-7").modulo(&q("3")).unwrap().to_string(), "-1");
    assert_eq!(q("10Ki").modulo(&q("3Ki")).unwrap().to_string(), "1Ki");
    assert_eq!(q("1.5").modulo(&q("1")), Err(ModuloError::NotWhole));
    assert_eq!(q("1").modulo(&q("0")), Err(ModuloError::ZeroDivisor));
    assert_eq!(q("-9223372036854775808").modulo(&q("-1")).unwrap().to_string(), "0");
}

proptest! {
    #[test]
    fn printing_and_reading_agree(
        text in r"[-+]?[0-9]{0,20}(\.[0-9]{0,12})?([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,2})?"
    ) {
        if let Ok(quantity) = Quantity::parse(&text) {
            prop_assert_eq!(Quantity::parse(&quantity.to_string()), Ok(quantity), "{}", quantity);
        }
    }

    #[test]
    fn any_text_and_any_operation_are_safe(
        a in r"[-+]?[0-9.]{0,45}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,7}",
        b in r"[-+]?[0-9.]{0,45}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,7}",
        f: f64,
    ) {
        if let (Ok(a), Ok(b)) = (Quantity::parse(&a), Quantity::parse(&b)) {
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            let _ = (a.add(&b), a.sub(&b), a.ratio(&b), a.modulo(&b), a.mul_f64(f), a.div_f64(f));
        }
    }

    #[test]
    fn adding_and_subtracting_cancel(a: i64, b in -1_000_000i64..1_000_000, milli: bool) {
        let a = Quantity::from_i64(a, Format::DecimalSi);
        let b = q(&format!("{b}{}", if milli { "m" } else { "" }));
        let back = a.add(&b).and_then(|sum| sum.sub(&b));
        prop_assert_eq!(back, Some(a));
    }
}
