//! Arithmetic, row by row as observed in the reference.

use super::{check, outcome};

#[test]
fn quantities_come_before_durations_and_kinds_do_not_mix() {
    check(&[
        ("add('1h','1s')", r#""1h0m1s""#),
        ("add('1h','30m')", "error: JMESPath function 'add': Types mismatch"),
        ("add('5m','5m')", r#""10m""#),
        ("add('1d','1s')", "error: JMESPath function 'add': invalid operand"),
        ("add('0s','0')", "error: JMESPath function 'add': Types mismatch"),
        ("add('0s','0s')", r#""0s""#),
        ("add(`1`,'1')", "error: JMESPath function 'add': Types mismatch"),
        ("add(`1`,'1h')", "error: JMESPath function 'add': Types mismatch"),
        ("add('','')", "error: JMESPath function 'add': invalid operand"),
        ("add(' 1','1')", "error: JMESPath function 'add': invalid operand"),
        ("add(`true`,`1`)", "error: JMESPath function 'add': invalid operand"),
        ("add(`null`,`1`)", "error: JMESPath function 'add': invalid operand"),
        ("multiply('2','3')", "error: JMESPath function 'multiply': Types mismatch"),
        ("multiply('1h','1h')", "error: JMESPath function 'multiply': Types mismatch"),
        ("divide(`1`,'1')", "error: JMESPath function 'divide': Types mismatch"),
        ("divide('1','1h')", "error: JMESPath function 'divide': Types mismatch"),
        ("modulo(`7`,'3')", "error: JMESPath function 'modulo': Types mismatch"),
        ("modulo('1h','-7m')", "error: JMESPath function 'modulo': Types mismatch"),
        ("divide('1','0s')", "error: JMESPath function 'divide': Types mismatch"),
    ]);
}

#[test]
fn sums_are_written_like_the_first_operand() {
    check(&[
        ("add('1Ki','24')", r#""1048""#),
        ("subtract('1Ki','24')", r#""1k""#),
        ("add('512Ki','512Ki')", r#""1Mi""#),
        ("add('1k','1')", r#""1001""#),
        ("add('0.5','0')", r#""500m""#),
        ("add('1.1Gi','0')", r#""1181116006400m""#),
        ("add('0','1Ki')", r#""1Ki""#),
        ("add('1Ki','0')", r#""1Ki""#),
        ("add('1Ki','1k')", r#""2024""#),
        ("add('1M','1Ki')", r#""1001024""#),
        ("add('1','1e3')", r#""1001""#),
        ("add('1e3','1')", r#""1001""#),
        ("add('9Ei','9Ei')", r#""18446744073709551614""#),
        ("add('99999999999999999999','1')", r#""100E""#),
        ("add('0.1n','1')", r#""1000000001n""#),
        ("subtract('1Gi','1Gi')", r#""0""#),
        ("subtract('0','1')", r#""-1""#),
        ("subtract('1h','3660s')", r#""-1m0s""#),
        ("add('1.5h','1h')", r#""2h30m0s""#),
        ("add('1µs','1ns')", r#""1.001µs""#),
        ("add(`0.1`,`0.2`)", "0.30000000000000004"),
        ("subtract(`0.3`,`0.1`)", "0.19999999999999998"),
    ]);
}

#[test]
fn products_keep_the_format_of_the_quantity() {
    check(&[
        ("multiply('1e3',`2`)", r#""2e3""#),
        ("multiply('500m',`2`)", r#""1""#),
        ("multiply('1Ki',`0.5`)", r#""512""#),
        ("multiply('1Mi',`0.5`)", r#""512Ki""#),
        ("multiply('1Gi',`0.3`)", r#""322122547200m""#),
        ("multiply('100ms',`15`)", r#""1.5s""#),
        ("multiply(`2`,'3Ki')", r#""6Ki""#),
        ("multiply('2E3',`2`)", r#""4e3""#),
        ("multiply('1',`0.1`)", r#""100m""#),
        ("multiply('1',`1e-10`)", r#""1n""#),
        ("multiply('3',`0.3333333333333333`)", r#""1000000002n""#),
        ("multiply('1ns',`0.5`)", r#""0s""#),
        ("multiply('-1ns',`1.9`)", r#""-1ns""#),
        ("multiply('1.5s',`9.295`)", r#""13.942499999s""#),
        ("multiply('1h',`-1`)", r#""-1h0m0s""#),
    ]);
}

#[test]
fn quotients_are_cut_off_at_the_finer_place() {
    check(&[
        ("divide('1.5',`2`)", r#""700m""#),
        ("divide('1500m',`2`)", r#""750m""#),
        ("divide('1.50',`4`)", r#""370m""#),
        ("divide('10',`3.5`)", r#""2800m""#),
        ("divide('-7',`2`)", r#""-3""#),
        ("divide('7',`-2`)", r#""-3""#),
        ("divide('5G',`3000000`)", r#""0""#),
        ("divide('5G',`1234567`)", r#""4050""#),
        ("divide('5000000000',`3000000`)", r#""1666""#),
        ("divide('1',`3`)", r#""0""#),
        ("divide('1Gi',`3`)", r#""357913941""#),
        ("divide('1.5Gi',`2`)", r#""768Mi""#),
        ("divide('1e3',`3`)", r#""333""#),
        ("divide('1','3')", "0.3333333333333333"),
        ("divide('1e30','3')", "3.333333333333333e+29"),
        ("divide('1h','1ms')", "3600000"),
        ("divide('10s',`3`)", r#""3.333333333s""#),
        ("divide('-1s',`3`)", r#""-333.333333ms""#),
        ("divide('155.703747s',`20`)", r#""7.785187349s""#),
        ("divide('1h',`1e300`)", r#""0s""#),
        ("divide('1','0')", "error: JMESPath function 'divide': Zero divisor passed"),
        ("divide('1',`0`)", "error: JMESPath function 'divide': Zero divisor passed"),
        ("divide('1h',`0`)", "error: JMESPath function 'divide': Zero divisor passed"),
        ("divide('1h','0s')", "error: JMESPath function 'divide': Zero divisor passed"),
        ("divide(`1`,`0`)", "error: JMESPath function 'divide': Zero divisor passed"),
    ]);
}

#[test]
fn remainders_take_the_sign_of_the_first() {
    check(&[
        ("modulo('-7','3')", r#""-1""#),
        ("modulo('-7','-3')", r#""-1""#),
        ("modulo(`-7`,`3`)", "-1"),
        ("modulo(`5`,`-3`)", "2"),
        ("modulo(`5.5`,`2`)", "error: JMESPath function 'modulo': Non-integer argument(s) passed for modulo"),
        ("modulo(`1e300`,`7`)", "error: JMESPath function 'modulo': Non-integer argument(s) passed for modulo"),
        ("modulo('1.5','1')", "error: JMESPath function 'modulo': Non-integer argument(s) passed for modulo"),
        ("modulo('7000','2k')", r#""1k""#),
        ("modulo('7Ki','2Ki')", r#""1Ki""#),
        ("modulo('5Ki','3')", r#""2""#),
        ("modulo('10E','7')", "error: JMESPath function 'modulo': Non-integer argument(s) passed for modulo"),
        ("modulo('-9223372036854775808','-1')", r#""0""#),
        ("modulo('1h','7ms')", r#""5ms""#),
        ("modulo('-7s','3s')", r#""-1s""#),
        ("modulo('5','0')", "error: JMESPath function 'modulo': Zero divisor passed"),
        ("modulo(`5`,`0`)", "error: JMESPath function 'modulo': Zero divisor passed"),
        ("modulo('1h','0s')", "error: JMESPath function 'modulo': Zero divisor passed"),
    ]);
}

#[test]
fn sums_of_lists_fold_and_leave_a_single_element_alone() {
    check(&[
        ("sum(['90m'])", r#""90m""#),
        ("sum(['90s','0s'])", r#""1m30s""#),
        ("sum(`[true]`)", "true"),
        ("sum(`[null]`)", "null"),
        ("sum(`[]`)", "error: JMESPath function 'sum': at least one element in the array is required"),
        ("sum(`[1,2,3]`)", "6"),
        ("sum(`[0.1,0.2,0.3]`)", "0.6000000000000001"),
        ("sum(['1','2','3Ki'])", r#""3075""#),
        ("sum(['1h','30s','1s'])", r#""1h0m31s""#),
        ("sum(['x'])", r#""x""#),
        ("sum(['x','y'])", "error: JMESPath function 'sum': invalid operand"),
        (r#"sum(`[1,"2"]`)"#, "error: JMESPath function 'sum': Types mismatch"),
    ]);
}

#[test]
fn rounding_is_half_away_from_zero() {
    check(&[
        ("round(`-2.5`,`0`)", "-3"),
        ("round(`0.5`,`0`)", "1"),
        ("round(`2.345`,`1`)", "2.3"),
        ("round(`2.675`,`2`)", "2.68"),
        ("round(`1.005`,`2`)", "1"),
        ("round(`1.015`,`2`)", "1.01"),
        ("round(`123456789.123456789`,`5`)", "123456789.12346"),
        ("round(`1.5`,`308`)", "1.5"),
        ("round(`1`,`0.5`)", "error: JMESPath function 'round': Non-integer argument(s) passed for round off"),
        ("round(`1`,`1e300`)", "error: JMESPath function 'round': Non-integer argument(s) passed for round off"),
    ]);
}

/// The reference goes on with what is left of the number: wrapped, cut down or not a number.
#[test]
fn overflow_is_an_error() {
    for expression in [
        "add('2540400h','2540400h')",
        "subtract('-2562047h','2562047h')",
        "multiply('1h',`1e10`)",
        "divide('1h',`1e-300`)",
        "add(`1e308`,`1e308`)",
        "multiply(`1e308`,`10`)",
        "round(`1e300`,`20`)",
        "round(`1.5`,`400`)",
    ] {
        let got = outcome(expression);
        assert!(got.ends_with(": the result is out of range"), "{expression}: {got}");
    }
    assert_eq!(outcome("round(`1`,`-1`)"), "error: JMESPath function 'round': argument #2 is out of bounds (-1)");
}
