//! Colours that tell jobs apart for every kind of eyes, on light and dark ground, and under dark letters.

/// One colour after the other, each as far as possible from all before it for people who see all colours, and for those
/// who lack red, green or blue receptors: few jobs differ widely, and even a hundred all differ. Chosen once, greedily, among
/// colours that carry dark letters; the law below holds them to it.
const COLOURS: [u32; 100] = [
    0x54a8e4, 0xf0f06c, 0xd87800, 0x48f0fc, 0xd8b490, 0x9c7884, 0x4884cc, 0x48ccf0, 0xc09078, 0xb4f0c0,
    0xf09c30, 0xc0d860, 0x849cb4, 0x90b4c0, 0x9cd8cc, 0xb47854, 0xc0a86c, 0x7884a8, 0xe4cc9c, 0x6c90f0,
    0x9cfcf0, 0xd8e484, 0xc06c00, 0x84ccb4, 0xf0a8fc, 0xf0b424, 0xd884d8, 0xf0789c, 0xd89030, 0x9ccc60,
    0x60a890, 0xccb4d8, 0xa89cfc, 0xa89048, 0x6c90c0, 0xcc609c, 0x7878e4, 0xfcccfc, 0x9ce4e4, 0xd8f0a8,
    0x3ca86c, 0x78e4b4, 0xe4c084, 0xc0a8d8, 0xb4cce4, 0xd89cb4, 0x9c84d8, 0x609054, 0x90a854, 0x3c906c,
    0xc06cb4, 0x6cb4a8, 0x60cc9c, 0xb4b448, 0xccf0d8, 0xb4fcc0, 0xb4a8fc, 0xf0d848, 0x90b484, 0xc0e4cc,
    0xe49c84, 0xa8786c, 0xa86ccc, 0xd8d884, 0xf090cc, 0x789ccc, 0xfcc03c, 0xa890fc, 0xcce4a8, 0x84d8b4,
    0x90843c, 0x909030, 0xa8c06c, 0xa8c0fc, 0xcc84b4, 0xf0c0cc, 0x90f0e4, 0xc08484, 0xf0e460, 0xe4f090,
    0xccc048, 0xfca8a8, 0xf0a824, 0x78b4f0, 0x9078d8, 0x549090, 0x78a830, 0x6c9c90, 0x6c9cf0, 0xb49060,
    0xa884a8, 0xcc84e4, 0xe49ce4, 0x54c06c, 0x84d878, 0x9cb4e4, 0x7884f0, 0xa890a8, 0x9084e4, 0x6ce4f0,
];

/// A job's colour as `#rrggbb`; they repeat after a hundred jobs.
pub(super) fn colour(job: u32) -> String {
    format!("#{:06x}", COLOURS[job as usize % COLOURS.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What people see who lack one kind of receptor, on linear colours (Machado and others, 2009), and those who lack none.
    const EYES: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ];

    fn linear(colour: u32) -> [f64; 3] {
        [16, 8, 0].map(|shift| {
            let level = f64::from(colour >> shift & 255) / 255.0;
            if level <= 0.040_45 { level / 12.92 } else { ((level + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
    }

    /// OKLab, times a hundred: differences of two are just seen.
    fn seen(colour: u32, eyes: [[f64; 3]; 3]) -> [f64; 3] {
        let cones = times(
            [
                [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
                [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
                [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
            ],
            times(eyes, linear(colour)).map(|level| level.clamp(0.0, 1.0)),
        );
        times(
            [
                [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
                [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
                [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
            ],
            cones.map(f64::cbrt),
        )
        .map(|value| 100.0 * value)
    }

    /// The least difference among the first so many jobs, for any eyes.
    fn least(jobs: usize) -> f64 {
        let mut least = f64::INFINITY;
        for eyes in EYES {
            let seen: Vec<[f64; 3]> = COLOURS[..jobs].iter().map(|&colour| seen(colour, eyes)).collect();
            for (at, a) in seen.iter().enumerate() {
                for b in &seen[..at] {
                    least = least.min(a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt());
                }
            }
        }
        least
    }

    #[test]
    fn a_difference_by_hand() {
        // White is (100, 0, 0) and black the origin.
        let (white, black) = (seen(0xff_ffff, EYES[0]), seen(0, EYES[0]));
        assert!((white[0] - 100.0).abs() < 1e-3 && white[1].abs() < 1e-3 && black[0].abs() < 1e-9);
    }

    #[test]
    fn jobs_differ_for_all_eyes() {
        for (jobs, far) in [(6, 13.2), (10, 8.5), (20, 4.8), (100, 1.9)] {
            assert!(least(jobs) >= far, "{jobs} jobs: {}", least(jobs));
        }
    }

    #[test]
    fn dark_letters_are_read_on_every_colour() {
        // The contrast that WCAG asks of small letters, against #14171b.
        let light = |colour: u32| {
            linear(colour).iter().zip([0.2126, 0.7152, 0.0722]).map(|(a, b)| a * b).sum::<f64>() + 0.05
        };
        for colour in COLOURS {
            assert!(light(colour) / light(0x14_171b) >= 4.5, "{colour:06x}");
        }
    }
}
