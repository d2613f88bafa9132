//! Colours that tell jobs apart on light and dark ground, and under dark letters.

/// A job's colour as `#rrggbb`.
///
/// Hues step by the golden angle, so that neighbours in number lie far apart on the wheel whatever the number of jobs;
/// lightness cycles through three steps, so that jobs whose hues come close still differ. All are light enough for
/// dark letters.
pub(super) fn colour(job: u32) -> String {
    const GOLDEN_ANGLE: f64 = 137.507_764;
    const LIGHTNESS: [f64; 3] = [0.69, 0.79, 0.63];
    const SATURATION: [f64; 3] = [0.62, 0.55, 0.50];
    let hue = (210.0 + f64::from(job) * GOLDEN_ANGLE) % 360.0;
    let step = (job / 3 % 3) as usize;
    let [red, green, blue] = from_hsl(hue, SATURATION[step], LIGHTNESS[step]);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The usual conversion from hue in degrees, saturation and lightness.
fn from_hsl(hue: f64, saturation: f64, lightness: f64) -> [u8; 3] {
    let amplitude = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|offset: f64| {
        let place = (offset + hue / 30.0) % 12.0;
        let level = lightness - amplitude * (place - 3.0).min(9.0 - place).clamp(-1.0, 1.0);
        (level * 255.0).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn known_conversions() {
        assert_eq!(from_hsl(0.0, 1.0, 0.5), [255, 0, 0]);
        assert_eq!(from_hsl(120.0, 1.0, 0.25), [0, 128, 0]);
        assert_eq!(from_hsl(210.0, 0.0, 0.5), [128, 128, 128]);
    }

    #[test]
    fn a_hundred_jobs_have_as_many_colours() {
        let all: BTreeSet<String> = (0..100).map(colour).collect();
        assert_eq!(all.len(), 100);
    }
}
