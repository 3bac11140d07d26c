//! What benchmarks give: figures of series of points, each point with the samples it was measured by. Tables, JSON and plots are made of these.

use serde::Serialize;

use super::stats::{self, Summary};

/// What the numbers of an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Bytes,
    Pes,
    Cores,
    Calls,
    Seconds,
    BytesPerSecond,
    PerSecond,
    /// Nothing to count: the point has a name.
    Name,
}

impl Unit {
    /// A number of this unit, with three digits.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Seconds => stats::duration(value),
            Self::BytesPerSecond => stats::rate(value).replace("/s", "B/s"),
            Self::PerSecond => stats::rate(value),
            Self::Bytes => bytes(value as u64),
            Self::Pes | Self::Cores | Self::Calls | Self::Name => format!("{value:.0}"),
        }
    }
}

/// 4096 as "4 KiB".
pub fn bytes(value: u64) -> String {
    npushmem::config::size_text(value)
}

/// An axis: its label without the unit, and the unit.
#[derive(Debug, Clone, Serialize)]
pub struct Axis {
    pub label: &'static str,
    pub unit: Unit,
}

/// One measured place of a series.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    /// Where it lies on the x axis.
    pub x: u64,
    /// What stands there instead of a number ([`Unit::Name`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
    /// In the y axis's unit.
    pub samples: Vec<f64>,
}

impl Point {
    /// Median and quartiles.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.samples)
    }
}

/// A line of a plot, a column of a table.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    pub label: String,
    pub points: Vec<Point>,
}

/// One plot, one table.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Short, for file names and JSON.
    pub id: &'static str,
    pub title: String,
    /// What exactly was measured, in one line.
    pub about: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

impl Figure {
    /// A figure without points.
    pub fn new(
        id: &'static str,
        title: impl Into<String>,
        about: impl Into<String>,
        x: Axis,
        y: Axis,
    ) -> Self {
        Self {
            id,
            title: title.into(),
            about: about.into(),
            x,
            y,
            series: Vec::new(),
        }
    }

    /// The series of this label, made when it is not there.
    pub fn series(&mut self, label: &str) -> &mut Series {
        let at = self.series.iter().position(|series| series.label == label);
        let at = at.unwrap_or_else(|| {
            self.series.push(Series {
                label: label.to_owned(),
                points: Vec::new(),
            });
            self.series.len() - 1
        });
        &mut self.series[at]
    }

    /// All x of all series, each once, in order.
    pub fn xs(&self) -> Vec<u64> {
        let mut xs: Vec<u64> = self
            .series
            .iter()
            .flat_map(|series| series.points.iter().map(|point| point.x))
            .collect();
        xs.sort_unstable();
        xs.dedup();
        xs
    }

    /// What stands at x on the axis.
    pub fn x_text(&self, x: u64) -> String {
        let name = self
            .series
            .iter()
            .flat_map(|series| &series.points)
            .find_map(|point| point.name.filter(|_| point.x == x));
        name.map_or_else(|| self.x.unit.text(x as f64), str::to_owned)
    }
}
