//! Medians and spread of a few samples, and how durations, rates and ratios are written.

/// What the rounds of one measurement gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Half of the samples are below.
    pub median: f64,
    /// A quarter of the samples is below.
    pub low: f64,
    /// A quarter of the samples is above.
    pub high: f64,
}

impl Summary {
    /// Of at least one sample; NaN in all fields for none.
    pub fn of(samples: &[f64]) -> Summary {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        // Between two samples the quantile is interpolated.
        let at = |share: f64| -> f64 {
            let place = share * sorted.len().saturating_sub(1) as f64;
            let (below, above) = (
                sorted.get(place.floor() as usize),
                sorted.get(place.ceil() as usize),
            );
            match (below, above) {
                (Some(below), Some(above)) => below + (above - below) * place.fract(),
                _ => f64::NAN,
            }
        };
        Summary {
            median: at(0.5),
            low: at(0.25),
            high: at(0.75),
        }
    }
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
    fn median_and_quartiles_are_samples_or_between_two() {
        let all = |median, low, high| Summary { median, low, high };
        assert_eq!(Summary::of(&[5.0, 1.0, 3.0, 2.0, 4.0]), all(3.0, 2.0, 4.0));
        assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 3.0]), all(2.5, 1.75, 3.25));
        assert_eq!(Summary::of(&[7.0]), all(7.0, 7.0, 7.0));
        assert!(Summary::of(&[]).median.is_nan());
    }

    #[test]
    fn one_slow_round_moves_nothing() {
        assert_eq!(
            Summary::of(&[1.0, 1.0, 50.0, 1.0, 1.0]),
            Summary::of(&[1.0; 5])
        );
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
