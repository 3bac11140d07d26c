//! Medians and spread of a few samples, and how durations, rates and ratios are written.

/// What the rounds of one measurement gave: seconds a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Middle sample; the mean of the two middle ones of an even number.
    pub median: f64,
    /// Smallest sample.
    pub least: f64,
    /// Largest sample.
    pub most: f64,
}

impl Summary {
    /// Of at least one sample; NaN in all fields for none.
    pub fn of(samples: &[f64]) -> Summary {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        };
        Summary {
            median,
            least: sorted.first().copied().unwrap_or(f64::NAN),
            most: sorted.last().copied().unwrap_or(f64::NAN),
        }
    }
}

/// Speed as a share of the limit's: limit / figure of each round, which had both side by side.
pub fn ratios(figure: &[f64], limit: &[f64]) -> Vec<f64> {
    figure.iter().zip(limit).map(|(f, l)| l / f).collect()
}

/// A duration of `seconds` with three digits: "1.40 ms", "498 ns".
pub fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 0.9995e-6 => (s * 1e9, "ns"),
        s if s < 0.9995e-3 => (s * 1e6, "us"),
        s if s < 0.9995 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// A rate of so many a second, with three digits: "5.20 M/s".
pub fn rate(per_second: f64) -> String {
    let (value, unit) = match per_second {
        r if r >= 0.9995e9 => (r / 1e9, "G/s"),
        r if r >= 0.9995e6 => (r / 1e6, "M/s"),
        r if r >= 0.9995e3 => (r / 1e3, "k/s"),
        r => (r, "/s"),
    };
    format!("{} {unit}", digits(value))
}

/// A number with three digits, or two after the point; no exponent.
pub fn digits(value: f64) -> String {
    match value {
        v if v < 0.0995 => format!("{v:.3}"),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_sample_or_the_mean_of_two() {
        assert_eq!(
            Summary::of(&[3.0, 1.0, 2.0]),
            Summary {
                median: 2.0,
                least: 1.0,
                most: 3.0
            }
        );
        assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(
            Summary::of(&[7.0]),
            Summary {
                median: 7.0,
                least: 7.0,
                most: 7.0
            }
        );
        assert!(Summary::of(&[]).median.is_nan());
    }

    #[test]
    fn one_slow_round_moves_the_spread_but_not_the_median() {
        let summary = Summary::of(&[1.0, 1.1, 50.0, 1.2, 1.1]);
        assert_eq!((summary.median, summary.most), (1.1, 50.0));
    }

    #[test]
    fn ratios_pair_the_rounds_and_are_above_one_for_what_is_faster_than_its_limit() {
        assert_eq!(ratios(&[2.0, 4.0, 1.0], &[1.0, 1.0, 2.0]), [0.5, 0.25, 2.0]);
    }

    #[test]
    fn durations_and_rates_have_three_digits_and_a_unit_that_fits() {
        assert_eq!(duration(498.4e-9), "498 ns");
        assert_eq!(duration(999.8e-9), "1.00 us");
        assert_eq!(duration(28.06e-6), "28.1 us");
        assert_eq!(duration(1.4e-3), "1.40 ms");
        assert_eq!(duration(2.0), "2.00 s");
        assert_eq!(rate(5.2e6), "5.20 M/s");
        assert_eq!(rate(999.9e6), "1.00 G/s");
        assert_eq!(rate(12.0), "12.0 /s");
    }
}
