//! The plan of a run: figures without points, and the steps that will give their points.

use super::figure::{Figure, Point};
use super::step::{Scale, Step};
use super::Engine;

/// Where the samples of a step go.
#[derive(Debug)]
struct Target {
    figure: usize,
    series: String,
    x: u64,
    name: Option<&'static str>,
    scale: Scale,
}

/// What the groups fill.
#[derive(Debug, Default)]
pub struct Plan {
    pub figures: Vec<Figure>,
    pub steps: Vec<Step>,
    targets: Vec<Target>,
}

/// How much is measured: the same for all groups.
#[derive(Debug, Clone)]
pub struct Scope {
    pub pes: u32,
    pub cores: u32,
    pub engines: Vec<Engine>,
    /// Bytes of messages, ascending.
    pub sizes: Vec<u64>,
    pub samples: u64,
    /// The emulated NPU's clock is the time model's: few calls say everything.
    pub modelled: bool,
}

/// Bytes that the calls of a sample move, at most, where time is real.
const SAMPLE_BYTES: u64 = 2 << 20;

impl Scope {
    /// Calls of a sample, each of which moves so many bytes: `most` small ones, few large ones. Modelled time does not vary, so there a few do.
    pub fn calls(&self, bytes: u64, most: u64) -> u64 {
        let calls = (SAMPLE_BYTES / bytes.max(1)).clamp(4, most);
        if self.modelled {
            calls.min(MODELLED_CALLS)
        } else {
            calls
        }
    }

    /// 1, 2, 4, ... up to `most`, and `most` itself.
    pub fn doubling(from: u32, most: u32) -> Vec<u32> {
        let mut all: Vec<u32> = std::iter::successors(Some(from), |n| n.checked_mul(2))
            .take_while(|&n| n < most)
            .collect();
        all.push(most.max(from));
        all
    }
}

/// Calls of a sample of modelled time.
const MODELLED_CALLS: u64 = 8;

impl Plan {
    /// Adds a figure; its number goes to [`Plan::point`].
    pub fn figure(&mut self, figure: Figure) -> usize {
        self.figures.push(figure);
        self.figures.len() - 1
    }

    /// A step that gives the point at x of a series.
    pub fn point(&mut self, figure: usize, series: &str, x: u64, scale: Scale, step: Step) {
        self.add(figure, series, x, None, scale, step);
    }

    /// The same where x has a name instead of a number.
    pub fn named(
        &mut self,
        figure: usize,
        series: &str,
        x: u64,
        name: &'static str,
        scale: Scale,
        step: Step,
    ) {
        self.add(figure, series, x, Some(name), scale, step);
    }

    fn add(
        &mut self,
        figure: usize,
        series: &str,
        x: u64,
        name: Option<&'static str>,
        scale: Scale,
        step: Step,
    ) {
        self.targets.push(Target {
            figure,
            series: series.to_owned(),
            x,
            name,
            scale,
        });
        self.steps.push(step);
    }

    /// The figures with their points: `samples` has the ticks of each step's samples, a tick is so many seconds.
    pub fn complete(self, tick: f64, samples: &[Vec<u64>]) -> Vec<Figure> {
        let mut figures = self.figures;
        for (target, ticks) in self.targets.into_iter().zip(samples) {
            figures[target.figure]
                .series(&target.series)
                .points
                .push(Point {
                    x: target.x,
                    name: target.name,
                    samples: ticks
                        .iter()
                        .map(|&ticks| target.scale.value(ticks as f64 * tick))
                        .collect(),
                });
        }
        figures
    }
}
