//! Numbers as a reader wants them: significant digits, powers of ten, errors. The one place that turns an `f64` into
//! text for tables, tiles and charts; knows nothing of where the text goes.

/// How a number is written. The default, [`Format::auto`], keeps up to four significant digits and whole numbers whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Format {
    style: Style,
    signed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Style {
    #[default]
    Auto,
    Fixed(usize),
    Significant(usize),
    Scientific(usize),
    Percent(usize),
}

impl Format {
    /// At most four significant digits without idle zeros, whole numbers whole, with a power of ten outside 10⁻⁴ … 10⁶.
    pub const fn auto() -> Self {
        Self { style: Style::Auto, signed: false }
    }

    /// Exactly `decimals` digits after the point.
    pub const fn fixed(decimals: usize) -> Self {
        Self { style: Style::Fixed(decimals), signed: false }
    }

    /// `digits` significant digits (at least one), with a power of ten outside 10⁻⁴ … 10⁶.
    pub const fn significant(digits: usize) -> Self {
        Self { style: Style::Significant(digits), signed: false }
    }

    /// `decimals` digits after the mantissa's point, always with a power of ten.
    pub const fn scientific(decimals: usize) -> Self {
        Self { style: Style::Scientific(decimals), signed: false }
    }

    /// A share as a percentage: 0.123 with one decimal is `12.3 %`.
    pub const fn percent(decimals: usize) -> Self {
        Self { style: Style::Percent(decimals), signed: false }
    }

    /// Writes a plus sign before positive numbers, as differences want.
    pub const fn signed(mut self) -> Self {
        self.signed = true;
        self
    }

    /// `value` as plain text, with Unicode superscripts for powers of ten.
    pub fn text(self, value: f64) -> String {
        self.shape(value, None, None).text()
    }

    /// Splits `value` (with its error or interval) at the decimal point, where tables align it.
    pub(crate) fn shape(self, value: f64, error: Option<f64>, interval: Option<(f64, f64)>) -> Shape {
        let (value, error, interval, unit) = match self.style {
            Style::Percent(_) => {
                (value * 100.0, error.map(|e| e * 100.0), interval.map(|(a, b)| (a * 100.0, b * 100.0)), " %")
            }
            _ => (value, error, interval, ""),
        };
        if !value.is_finite() {
            let head = if value.is_nan() { "n/a" } else { "∞" };
            let sign = if value == f64::NEG_INFINITY { "-" } else { "" };
            return Shape { head: format!("{sign}{head}"), tail: String::new(), exponent: None, unit: "" };
        }
        let (decimals, exponent) = self.digits(value);
        let scale = exponent.map_or(1.0, |e| 10f64.powi(-e));
        // 10^-e overflows below 1e-308; dividing in two steps keeps the mantissa right for subnormal numbers.
        let scaled = |v: f64| match exponent {
            Some(e) if e < -300 => v * 1e300 * 10f64.powi(-e - 300),
            _ => v * scale,
        };
        let plain = fixed(scaled(value), decimals);
        let plus = if self.signed && value > 0.0 && plain.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
            "+"
        } else {
            ""
        };
        let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
        let mut shape = Shape { head: format!("{plus}{whole}"), tail: fraction.to_string(), exponent, unit };
        if let Some(error) = error {
            let near = fixed(scaled(error), decimals);
            let vanished = error > 0.0 && !near.bytes().any(|b| (b'1'..=b'9').contains(&b));
            let near = if vanished && exponent.is_none() { Format::significant(1).text(error) } else { near };
            shape.tail.push_str(&format!(" ± {}", if error.is_finite() { near } else { "n/a".into() }));
            if exponent.is_some() {
                shape.head.insert(0, '(');
                shape.tail.push(')');
            }
        }
        if let Some((low, high)) = interval {
            let end = |v: f64| match (v.is_finite(), exponent) {
                (true, None) => fixed(v, decimals),
                _ => Format { style: Style::Significant(decimals + 1), signed: false }.text(v),
            };
            let bracket = format!(" [{}, {}]", end(low), end(high));
            match exponent {
                // The power of ten belongs to the value, so it is written out before the bracket.
                Some(e) => {
                    shape.tail.push_str(&format!(" × 10{}{bracket}", superscript(e)));
                    shape.exponent = None;
                }
                None => shape.tail.push_str(&bracket),
            }
        }
        shape
    }

    /// The decimals to show, and the power of ten where one is wanted.
    fn digits(self, value: f64) -> (usize, Option<i32>) {
        let significant = |digits: usize| {
            let digits = digits.max(1);
            let power = power_of_ten(value, digits - 1);
            if value == 0.0 {
                (0, None)
            } else if (-4..6).contains(&power) {
                ((digits as i32 - 1 - power).max(0) as usize, None)
            } else {
                (digits - 1, Some(power))
            }
        };
        match self.style {
            Style::Auto if value.fract() == 0.0 && value.abs() < 1e6 => (0, None),
            Style::Auto => {
                let (decimals, power) = significant(4);
                let written = format!("{value:.3e}");
                let mantissa = written.split('e').next().unwrap_or("");
                let idle = mantissa.bytes().rev().take_while(|&b| b == b'0').count();
                (decimals.saturating_sub(idle), power)
            }
            Style::Fixed(decimals) | Style::Percent(decimals) => (decimals, None),
            Style::Significant(digits) => significant(digits),
            Style::Scientific(_) if value == 0.0 => (0, None),
            Style::Scientific(decimals) => (decimals, Some(power_of_ten(value, decimals))),
        }
    }
}

/// A number cut where tables align it: `head` ends before the decimal point, `tail` starts with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) head: String,
    pub(crate) tail: String,
    pub(crate) exponent: Option<i32>,
    pub(crate) unit: &'static str,
}

impl Shape {
    /// Everything from the decimal point on, as plain text.
    pub(crate) fn tail_text(&self) -> String {
        let power = self.exponent.map_or(String::new(), |e| format!(" × 10{}", superscript(e)));
        format!("{}{power}{}", self.tail, self.unit)
    }

    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.head, self.tail_text())
    }
}

/// The exponent of `value` in scientific notation after rounding to `decimals` mantissa digits.
fn power_of_ten(value: f64, decimals: usize) -> i32 {
    let written = format!("{value:.decimals$e}");
    written.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0)
}

/// Fixed decimals, commas between thousands from five digits on, and no negative zero.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let written = format!("{value:.decimals$}");
    let (minus, digits) = match written.strip_prefix('-') {
        Some(digits) if digits.bytes().any(|b| (b'1'..=b'9').contains(&b)) => ("-", digits),
        Some(digits) => ("", digits),
        None => ("", written.as_str()),
    };
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 && whole.len() > 4 {
            grouped.push(',');
        }
        grouped.push(c);
    }
    format!("{minus}{grouped}{fraction}")
}

/// `power` in Unicode superscripts: `-3` gives `⁻³`.
pub(crate) fn superscript(power: i32) -> String {
    let raise = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        // The remaining superscript digits stand in one block, in order.
        c => char::from_u32(0x2070 + c as u32 - '0' as u32).unwrap_or(c),
    };
    power.to_string().chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_write_what_they_say() {
        for (format, value, want) in [
            (Format::auto(), 12.0, "12"),
            (Format::auto(), 123456.0, "123,456"),
            (Format::auto(), 0.123456, "0.1235"),
            (Format::auto(), 0.5, "0.5"),
            (Format::auto(), 1200.5, "1200"),
            (Format::auto(), 2e-9, "2 × 10⁻⁹"),
            (Format::auto(), 12345678.5, "1.235 × 10⁷"),
            (Format::fixed(2), -0.001, "0.00"),
            (Format::fixed(2).signed(), 0.001, "0.00"),
            (Format::fixed(2).signed(), 0.5, "+0.50"),
            // 9.996 rounds up to 10.0 at three digits, so the power moves from 0 to 1.
            (Format::significant(3), 9.996, "10.0"),
            (Format::significant(3), 1.234e-7, "1.23 × 10⁻⁷"),
            (Format::significant(2), 0.0, "0"),
            (Format::scientific(1), 0.0129, "1.3 × 10⁻²"),
            (Format::scientific(1), 5e-324, "4.9 × 10⁻³²⁴"),
            (Format::percent(1), 0.1234, "12.3 %"),
            (Format::auto(), f64::NAN, "n/a"),
            (Format::auto(), f64::NEG_INFINITY, "-∞"),
        ] {
            assert_eq!(format.text(value), want, "{format:?} of {value}");
        }
    }

    #[test]
    fn errors_share_the_decimals_and_the_power() {
        let text = |format: Format, v, e| format.shape(v, Some(e), None).text();
        assert_eq!(text(Format::fixed(2), 1.234, 0.056), "1.23 ± 0.06");
        assert_eq!(text(Format::scientific(1), 1.23e-3, 4e-4), "(1.2 ± 0.4) × 10⁻³");
        // An error that would print as zero keeps one digit of its own.
        assert_eq!(text(Format::fixed(1), 1.2, 0.004), "1.2 ± 0.004");
        assert_eq!(Format::fixed(1).shape(1.0, None, Some((0.5, 1.5))).text(), "1.0 [0.5, 1.5]");
        assert_eq!(
            Format::scientific(1).shape(1e-5, None, Some((-2e-6, 2e-5))).text(),
            "1.0 × 10⁻⁵ [-2.0 × 10⁻⁶, 2.0 × 10⁻⁵]"
        );
    }
}
