//! A row of the table: what was measured, against what, and what it should be.

use serde::{Deserialize, Serialize};

use crate::stats::{self, Summary};

/// What a figure should reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// At least this share of the limit's speed.
    Ratio(f64),
    /// At most this many seconds a call.
    Seconds(f64),
    /// At least this many calls a second.
    Rate(f64),
}

/// One measurement with its limit, as the rounds gave them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// What is measured.
    pub name: String,
    /// `mapped`, `roce`, or nothing.
    pub engine: String,
    /// Seconds a call, one sample a round.
    pub figure: Vec<f64>,
    /// What the limit is.
    pub limit_name: String,
    /// Seconds a call, one sample a round.
    pub limit: Vec<f64>,
    /// None: shown for information.
    pub goal: Option<Goal>,
    /// Bytes that a call moves, where a bandwidth means something.
    pub bytes: Option<u64>,
}

/// Whether a goal was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Reached by the median.
    Met,
    /// Not reached by the median.
    Missed,
}

impl Row {
    /// Seconds a call.
    pub fn figure(&self) -> Summary {
        Summary::of(&self.figure)
    }

    /// Seconds a call, bare.
    pub fn limit(&self) -> Summary {
        Summary::of(&self.limit)
    }

    /// Share of the limit's speed.
    pub fn ratio(&self) -> Summary {
        Summary::of(&stats::ratios(&self.figure, &self.limit))
    }

    /// None without a goal.
    pub fn verdict(&self) -> Option<Verdict> {
        let met = match self.goal? {
            Goal::Ratio(least) => self.ratio().median >= least,
            Goal::Seconds(most) => self.figure().median <= most,
            Goal::Rate(least) => 1.0 / self.figure().median >= least,
        };
        Some(if met { Verdict::Met } else { Verdict::Missed })
    }

    /// The figure in the goal's unit, or with its bandwidth.
    pub fn shown(&self) -> String {
        let Summary { median, low, high } = self.figure();
        let spread = format!("({} - {})", stats::duration(low), stats::duration(high));
        match (self.goal, self.bytes) {
            (Some(Goal::Rate(_)), _) => {
                format!(
                    "{} ({} - {})",
                    stats::rate(1.0 / median),
                    stats::rate(1.0 / high),
                    stats::rate(1.0 / low)
                )
            }
            (_, Some(bytes)) => {
                format!(
                    "{}B/s: {} {spread}",
                    &stats::rate(bytes as f64 / median).replace("/s", ""),
                    stats::duration(median)
                )
            }
            _ => format!("{} {spread}", stats::duration(median)),
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Goal::Ratio(least) => write!(f, "ratio >= {}", stats::digits(least)),
            Goal::Seconds(most) => write!(f, "< {}", stats::duration(most)),
            Goal::Rate(least) => write!(f, ">= {}", stats::rate(least)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(figure: &[f64], goal: Option<Goal>, bytes: Option<u64>) -> Row {
        Row {
            name: "put".into(),
            engine: "roce".into(),
            figure: figure.into(),
            limit_name: "memcpy".into(),
            limit: vec![1e-7; figure.len()],
            goal,
            bytes,
        }
    }

    #[test]
    fn the_median_decides_whether_a_goal_is_met() {
        let figure = [1.9e-7, 1.0, 1.9e-7];
        let verdict = |goal| row(&figure, Some(goal), None).verdict();
        assert_eq!(verdict(Goal::Ratio(0.5)), Some(Verdict::Met));
        assert_eq!(verdict(Goal::Ratio(0.6)), Some(Verdict::Missed));
        assert_eq!(verdict(Goal::Seconds(2e-7)), Some(Verdict::Met));
        assert_eq!(verdict(Goal::Seconds(1e-7)), Some(Verdict::Missed));
        assert_eq!(verdict(Goal::Rate(5e6)), Some(Verdict::Met));
        assert_eq!(verdict(Goal::Rate(6e6)), Some(Verdict::Missed));
        assert_eq!(row(&figure, None, None).verdict(), None);
    }

    #[test]
    fn figures_are_shown_in_their_goals_unit_with_the_spread() {
        assert_eq!(
            row(&[1e-7, 2e-7, 4e-7], None, None).shown(),
            "200 ns (150 ns - 300 ns)"
        );
        assert_eq!(
            row(&[1e-7, 2e-7, 4e-7], Some(Goal::Rate(5e6)), None).shown(),
            "5.00 M/s (3.33 M/s - 6.67 M/s)"
        );
        assert_eq!(
            row(&[1e-4], None, Some(1 << 20)).shown(),
            "10.5 GB/s: 100 us (100 us - 100 us)"
        );
    }

    #[test]
    fn goals_read_as_conditions() {
        assert_eq!(Goal::Ratio(0.25).to_string(), "ratio >= 0.25");
        assert_eq!(Goal::Seconds(30e-6).to_string(), "< 30.0 us");
        assert_eq!(Goal::Rate(5e6).to_string(), ">= 5.00 M/s");
    }
}
