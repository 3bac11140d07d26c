//! A figure as SVG: logarithmic axes where the values span much, units, legend, quartiles. Knows figures and nothing of how they came to be. Drawn by
//! plotters' SVG backend; text stays text, so viewers choose among the fonts named.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figure::{Figure, Point, Unit};

/// Pixels.
const SIZE: (u32, u32) = (1280, 660);
const HEAD: u32 = 96;
const LEGEND: u32 = 230;
const FONT: &str = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif";
const INK: RGBColor = RGBColor(0x1f, 0x29, 0x33);
const FAINT: RGBColor = RGBColor(0x5f, 0x6b, 0x7a);
const GRID: RGBColor = RGBColor(0xe3, 0xe7, 0xec);
const AXIS: RGBColor = RGBColor(0x9a, 0xa5, 0xb1);
/// Behind "modelled" and "emulated".
const MODELLED: RGBColor = RGBColor(0x7b, 0x3f, 0x98);
const EMULATED: RGBColor = RGBColor(0x5f, 0x6b, 0x7a);
/// Colours that people with any colour vision tell apart (Okabe and Ito), without the yellow that vanishes on white.
const COLORS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x44, 0x4c, 0x56),
];

/// The whole file. `clock`: "modelled", "emulated", "NPU"; `note` stands under the title.
pub fn svg(figure: &Figure, clock: &str, note: &str) -> Result<String, String> {
    let mut text = String::new();
    draw(figure, clock, note, &mut text)?;
    Ok(text)
}

fn draw(figure: &Figure, clock: &str, note: &str, text: &mut String) -> Result<(), String> {
    let error = |error: &dyn std::fmt::Display| error.to_string();
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(|e| error(&e))?;
    let style = |size: u32, color: &RGBColor| (FONT, size).into_font().color(color);
    root.draw_text(&figure.title, &style(28, &INK), (28, 18))
        .map_err(|e| error(&e))?;
    root.draw_text(&figure.about, &style(15, &FAINT), (29, 52))
        .map_err(|e| error(&e))?;
    root.draw_text(note, &style(13, &FAINT), (29, 74))
        .map_err(|e| error(&e))?;
    badge(&root, clock).map_err(|e| error(&e))?;

    let x = Scale::x(figure);
    let y = Scale::y(figure);
    let (_, body) = root.split_vertically(HEAD);
    let (body, side) = body.split_horizontally(SIZE.0 - LEGEND);
    let mut chart = ChartBuilder::on(&body)
        .margin_top(14)
        .margin_right(30)
        .margin_bottom(14)
        .margin_left(16)
        .x_label_area_size(58)
        .y_label_area_size(96)
        .build_cartesian_2d(x.clone(), y)
        .map_err(|e| error(&e))?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(AXIS)
        .x_desc(axis_text(figure.x.label, figure.x.unit))
        .y_desc(axis_text(figure.y.label, figure.y.unit))
        .axis_desc_style(style(17, &INK))
        .label_style(style(15, &INK))
        .x_labels(ALL_TICKS)
        .y_labels(ALL_TICKS)
        .draw()
        .map_err(|e| error(&e))?;

    let names = figure.x.unit == Unit::Name;
    let mut many = figure.series.len() as f64;
    if many < 2.0 {
        many = 2.0;
    }
    for (number, series) in figure.series.iter().enumerate() {
        let color = COLORS[number % COLORS.len()];
        // Several series beside one another where the places have names.
        let shift = if names {
            (number as f64 - (many - 1.0) / 2.0) * 0.36 / many
        } else {
            0.0
        };
        let place = |point: &Point| point.x as f64 + shift;
        let mut points: Vec<&Point> = series
            .points
            .iter()
            .filter(|point| point.summary().median > 0.0)
            .collect();
        points.sort_by_key(|point| point.x);
        let quartiles = |point: &&Point| {
            let summary = point.summary();
            (
                place(point),
                summary.low.max(f64::MIN_POSITIVE),
                summary.high,
            )
        };
        if names || points.len() == 1 {
            let whiskers = points.iter().map(quartiles);
            chart
                .draw_series(whiskers.map(|(x, low, high)| {
                    PathElement::new(vec![(x, low), (x, high)], color.mix(0.45).stroke_width(5))
                }))
                .map_err(|e| error(&e))?;
        } else {
            let mut band: Vec<(f64, f64)> = points
                .iter()
                .map(quartiles)
                .map(|(x, low, _)| (x, low))
                .collect();
            band.extend(
                points
                    .iter()
                    .rev()
                    .map(quartiles)
                    .map(|(x, _, high)| (x, high)),
            );
            chart
                .draw_series(std::iter::once(Polygon::new(band, color.mix(0.16))))
                .map_err(|e| error(&e))?;
            let line = points
                .iter()
                .map(|point| (place(point), point.summary().median));
            chart
                .draw_series(LineSeries::new(line, color.stroke_width(3)))
                .map_err(|e| error(&e))?;
        }
        let marks = points
            .iter()
            .map(|point| (place(point), point.summary().median));
        if is_open(number) {
            chart
                .draw_series(marks.clone().map(|at| Circle::new(at, 6, color.filled())))
                .map_err(|e| error(&e))?;
        }
        chart
            .draw_series(marks.map(|at| mark(number, at)))
            .map_err(|e| error(&e))?;
    }
    legend(&side, figure).map_err(|e| error(&e))?;
    root.present().map_err(|e| error(&e))
}

fn is_open(number: usize) -> bool {
    number % 2 == 1
}

/// The mark of a series: filled for even ones, open for odd ones, so that lines that lie on one another are told apart.
fn mark<C: Clone>(number: usize, at: C) -> Circle<C, i32> {
    let color = COLORS[number % COLORS.len()];
    if is_open(number) {
        Circle::new(at, 4, WHITE.filled())
    } else {
        Circle::new(at, 5, color.filled())
    }
}

/// Series and their marks, beside the plot.
fn legend<DB: DrawingBackend>(
    area: &DrawingArea<DB, plotters::coord::Shift>,
    figure: &Figure,
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    let style = (FONT, 15)
        .into_font()
        .color(&INK)
        .pos(Pos::new(HPos::Left, VPos::Center));
    for (number, series) in figure.series.iter().enumerate() {
        let color = COLORS[number % COLORS.len()];
        let y = 26 + 30 * number as i32;
        area.draw(&PathElement::new(
            vec![(0, y), (34, y)],
            color.stroke_width(3),
        ))?;
        area.draw(&Circle::new((17, y), 6, color.filled()))?;
        area.draw(&mark(number, (17, y)))?;
        area.draw_text(&series.label, &style, (44, y))?;
    }
    Ok(())
}

/// The word that says what kind of time this is, in the corner.
fn badge<DB: DrawingBackend>(
    root: &DrawingArea<DB, plotters::coord::Shift>,
    clock: &str,
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    if clock == "NPU" {
        return Ok(());
    }
    let color = if clock == "modelled" {
        MODELLED
    } else {
        EMULATED
    };
    let (right, top) = (SIZE.0 as i32 - 30, 20);
    root.draw(&Rectangle::new(
        [(right - 132, top), (right, top + 32)],
        color.filled(),
    ))?;
    let style = (FONT, 17)
        .into_font()
        .color(&WHITE)
        .pos(Pos::new(HPos::Center, VPos::Center));
    root.draw_text(clock, &style, (right - 66, top + 16))
}

fn axis_text(label: &str, unit: Unit) -> String {
    match unit {
        Unit::Bytes => format!("{label} (bytes)"),
        Unit::PerSecond => format!("{label} per second"),
        // The ticks have the unit.
        _ => label.to_owned(),
    }
}

/// An axis whose ticks are chosen here: where they are and what they say.
#[derive(Debug, Clone)]
struct Scale {
    low: f64,
    high: f64,
    log: bool,
    ticks: Vec<(f64, String)>,
}

/// Values that span more than this are shown on a logarithmic axis.
const LOG_FROM: f64 = 8.0;

impl Scale {
    fn x(figure: &Figure) -> Self {
        let xs = figure.xs();
        let (first, last) = (
            xs.first().copied().unwrap_or(0) as f64,
            xs.last().copied().unwrap_or(1) as f64,
        );
        if figure.x.unit == Unit::Name {
            let ticks = xs.iter().map(|&x| (x as f64, figure.x_text(x))).collect();
            return Self {
                low: first - 0.5,
                high: last + 0.5,
                log: false,
                ticks,
            };
        }
        // Powers of two; every second or third where they would be crowded.
        let every = (xs.len().div_ceil(MOST_TICKS)).max(1);
        let ticks = xs
            .iter()
            .step_by(every)
            .map(|&x| (x as f64, figure.x_text(x)))
            .collect();
        let edge = if first == last { 2.0 } else { 1.12 };
        Self {
            low: first.max(1.0) / edge,
            high: last.max(1.0) * edge,
            log: true,
            ticks,
        }
    }

    fn y(figure: &Figure) -> Self {
        let summaries = figure
            .series
            .iter()
            .flat_map(|series| &series.points)
            .map(Point::summary);
        let (mut low, mut high) = (f64::INFINITY, 0f64);
        for summary in summaries.filter(|summary| summary.median > 0.0) {
            low = low.min(summary.low.max(summary.median / 10.0));
            high = high.max(summary.high.min(summary.median * 10.0));
        }
        if !low.is_finite() {
            (low, high) = (0.1, 1.0);
        }
        let unit = figure.y.unit;
        if high / low < LOG_FROM {
            let step = nice_step(high / 6.0);
            let top = (high * 1.1 / step).ceil() * step;
            let count = (top / step).round() as u32;
            let ticks = (0..=count)
                .map(|n| f64::from(n) * step)
                .map(|value| (value, short(unit, value)))
                .collect();
            return Self {
                low: 0.0,
                high: top,
                log: false,
                ticks,
            };
        }
        let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let factors: &[f64] = if to - from <= 3 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let range = low / 1.3..high * 1.3;
        let ticks = (from - 1..=to)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
            .filter(|value| range.contains(value))
            .map(|value| (value, short(unit, value)))
            .collect();
        Self {
            low: range.start,
            high: range.end,
            log: true,
            ticks,
        }
    }
}

/// Ticks that an axis may have: all that it says.
const ALL_TICKS: usize = 64;
/// Labels on the x axis at most.
const MOST_TICKS: usize = 12;

/// 1, 2 or 5 times a power of ten, at least `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|f| f * power)
        .find(|&step| step >= least * 0.999)
        .unwrap_or(power)
}

/// "1 us" rather than "1.00 us", "0" rather than "0.000 ns".
fn short(unit: Unit, value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = unit.text(value);
    match text.split_once(' ') {
        Some((digits, rest)) if digits.contains('.') => {
            format!(
                "{} {rest}",
                digits.trim_end_matches('0').trim_end_matches('.')
            )
        }
        _ => text,
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let place = |v: f64| {
            if self.log {
                v.max(f64::MIN_POSITIVE).ln()
            } else {
                v
            }
        };
        let share = (place(*value) - place(self.low)) / (place(self.high) - place(self.low));
        limit.0 + (share.clamp(-0.2, 1.2) * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|(tick, _)| tick == value);
        tick.map_or_else(String::new, |(_, text)| text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::figure::Axis;
    use super::*;

    fn figure(unit: Unit, values: &[f64]) -> Figure {
        let x = Axis {
            label: "message size",
            unit: Unit::Bytes,
        };
        let mut figure = Figure::new(
            "f",
            "Put <latency>",
            "about & more",
            x,
            Axis {
                label: "latency",
                unit,
            },
        );
        for (number, &value) in values.iter().enumerate() {
            figure.series("roce").points.push(Point {
                x: 8 << number,
                name: None,
                samples: vec![value, value * 1.1],
            });
            figure.series("mapped").points.push(Point {
                x: 8 << number,
                name: None,
                samples: vec![value * 2.0],
            });
        }
        figure
    }

    #[test]
    fn a_plot_has_title_axes_with_units_ticks_and_a_legend() {
        let text = svg(
            &figure(Unit::Seconds, &[1e-6, 2e-6, 1e-4]),
            "modelled",
            "a note",
        )
        .unwrap();
        assert!(
            text.starts_with("<svg") && text.trim_end().ends_with("</svg>"),
            "{text:.80}"
        );
        for part in [
            "Put &lt;latency&gt;",
            "about &amp; more",
            "message size (bytes)",
            "latency",
            "roce",
            "mapped",
            "8 B",
            "32 B",
            "10 us",
            "modelled",
            "a note",
        ] {
            assert!(text.contains(part), "{part} is not in the plot");
        }
    }

    #[test]
    fn a_point_alone_and_a_figure_of_zeros_are_drawn() {
        for values in [&[1e-6][..], &[0.0, 0.0]] {
            assert!(svg(&figure(Unit::Seconds, values), "emulated", "")
                .unwrap()
                .contains("</svg>"));
        }
    }

    #[test]
    fn values_within_a_decade_have_a_linear_axis_from_zero() {
        let scale = Scale::y(&figure(Unit::PerSecond, &[1e6, 2e6]));
        assert!(
            !scale.log && scale.low == 0.0 && scale.high >= 4e6,
            "{scale:?}"
        );
        assert!(Scale::y(&figure(Unit::PerSecond, &[1e3, 1e6])).log);
    }

    #[test]
    fn ticks_read_short() {
        assert_eq!(short(Unit::Seconds, 1e-6), "1 us");
        assert_eq!(short(Unit::Seconds, 2e-4), "200 us");
        assert_eq!(short(Unit::BytesPerSecond, 5e9), "5 GB/s");
        assert_eq!(nice_step(0.3e6), 0.5e6);
    }
}
