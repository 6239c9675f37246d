//! Quantities and other scalars: two lines, each read as every kind of scalar and compared.

#![no_main]

use ephor_expr::scalar::duration::Duration;
use ephor_expr::scalar::go_regex;
use ephor_expr::scalar::image_ref::ImageRef;
use ephor_expr::scalar::quantity::Quantity;
use ephor_expr::scalar::wildcard::Wildcard;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (first, second) = text.split_once('\n').unwrap_or((text, "1"));
    if let (Ok(a), Ok(b)) = (Quantity::parse(first), Quantity::parse(second)) {
        let printed = a.to_string();
        assert_eq!(Quantity::parse(&printed).as_ref(), Ok(&a), "{printed}");
        assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        let _ = (a.add(&b), a.sub(&b), a.ratio(&b), a.modulo(&b), a.mul_f64(b.as_f64()), a.div_f64(b.as_f64()));
    }
    let _ = Duration::parse(first);
    drop(ImageRef::parse(first, "docker.io"));
    let _ = Wildcard::new(first).matches(second);
    if let Ok(regex) = go_regex::compile(first) {
        let _ = regex.is_match(second);
    }
});
