//! How figures leave the program: tables on the terminal, one JSON file, an SVG a figure.

use std::path::{Path, PathBuf};

use comfy_table::{presets, CellAlignment, ContentArrangement, Table};
use serde::Serialize;

use super::cost::{self, Cost};
use super::figure::{Figure, Point, Unit};
use super::plot;
use super::stats::Summary;
use crate::failure::Failure;

/// Layout of the JSON file; it grows by new fields only while this stays.
const JSON_VERSION: u32 = 1;

/// A finished run.
#[derive(Debug)]
pub struct Report {
    pub pes: u32,
    pub cores: u32,
    pub emulated: bool,
    pub modelled: bool,
    pub figures: Vec<Figure>,
    pub costs: Vec<Cost>,
}

#[derive(Serialize)]
struct Json<'a> {
    version: u32,
    npushmem: &'static str,
    pes: u32,
    cores: u32,
    emulated: bool,
    /// `wall`: ticks of the system counter; `modelled`: the time model's.
    clock: &'static str,
    figures: Vec<JsonFigure<'a>>,
    costs: &'a [Cost],
}

#[derive(Serialize)]
struct JsonFigure<'a> {
    id: &'a str,
    title: &'a str,
    about: &'a str,
    x: &'a super::figure::Axis,
    y: &'a super::figure::Axis,
    series: Vec<JsonSeries<'a>>,
}

#[derive(Serialize)]
struct JsonSeries<'a> {
    label: &'a str,
    points: Vec<JsonPoint<'a>>,
}

#[derive(Serialize)]
struct JsonPoint<'a> {
    x: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    median: f64,
    low: f64,
    high: f64,
    samples: &'a [f64],
}

impl Report {
    /// What the numbers are numbers of, for every title.
    pub fn clock(&self) -> &'static str {
        match (self.emulated, self.modelled) {
            (_, true) => "modelled",
            (true, false) => "emulated",
            (false, false) => "NPU",
        }
    }

    /// Prints tables, writes files.
    pub fn write(&self, json: Option<&Path>, plot: Option<&Path>) -> Result<(), Failure> {
        let mut said = String::new();
        if let Some(path) = json {
            let text = self.json()? + "\n";
            if path.as_os_str() == "-" {
                crate::print(&text)?;
            } else {
                save("--json", path, &text)?;
            }
        }
        if let Some(path) = plot {
            for figure in self
                .figures
                .iter()
                .filter(|figure| !figure.series.is_empty())
            {
                let target = self.plot_path(path, figure);
                let text = plot::svg(figure, self.clock(), &self.subtitle()).map_err(|error| {
                    Failure::failed(format!("cannot draw {}: {error}", figure.id))
                })?;
                save("--plot", &target, &text)?;
                said += &format!("plot: {}\n", target.display());
            }
        }
        if json.is_some_and(|path| path.as_os_str() == "-") {
            return Ok(());
        }
        let mut text = String::new();
        for figure in self
            .figures
            .iter()
            .filter(|figure| !figure.series.is_empty())
        {
            text += &format!(
                "{} [{}]\n{}\n{}\n\n",
                figure.title,
                self.clock(),
                figure.about,
                table(figure)
            );
        }
        if !self.costs.is_empty() {
            text += &(cost::table(&self.costs) + "\n");
        }
        if !self.figures.is_empty() {
            text += &self.foot();
        }
        crate::print(&(text + &said))
    }

    /// One line under every plot's title.
    fn subtitle(&self) -> String {
        match (self.emulated, self.modelled) {
            (_, true) => {
                "modelled: virtual time of the emulated NPU (docs/emulation.md), not a measurement"
                    .to_owned()
            }
            (true, false) => {
                "emulated NPU: time of this machine's processors, not of an NPU".to_owned()
            }
            (false, false) => "NPU, system counter".to_owned(),
        }
    }

    fn foot(&self) -> String {
        match (self.emulated, self.modelled) {
            (_, true) => "Modelled: virtual time by the parameters in sim/src/time/parameters.rs. No NPU and no network took part, and nothing was measured.\n",
            (true, false) => "Medians; half of the samples lie between the numbers in brackets. The NPU is emulated: these are times of this machine's processors, not of an NPU.\n",
            (false, false) => "Medians; half of the samples lie between the numbers in brackets.\n",
        }
        .to_owned()
    }

    fn plot_path(&self, path: &Path, figure: &Figure) -> PathBuf {
        let drawn = self
            .figures
            .iter()
            .filter(|figure| !figure.series.is_empty());
        if drawn.count() == 1 {
            return path.to_owned();
        }
        let stem = path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        path.with_file_name(format!("{stem}-{}.svg", figure.id))
    }

    fn json(&self) -> Result<String, Failure> {
        let point = |point: &'_ Point| {
            let Summary { median, low, high } = point.summary();
            (point.x, point.name, median, low, high)
        };
        let figures = self
            .figures
            .iter()
            .map(|figure| JsonFigure {
                id: figure.id,
                title: &figure.title,
                about: &figure.about,
                x: &figure.x,
                y: &figure.y,
                series: figure
                    .series
                    .iter()
                    .map(|series| JsonSeries {
                        label: &series.label,
                        points: series
                            .points
                            .iter()
                            .map(|p| {
                                let (x, name, median, low, high) = point(p);
                                JsonPoint {
                                    x,
                                    name,
                                    median,
                                    low,
                                    high,
                                    samples: &p.samples,
                                }
                            })
                            .collect(),
                    })
                    .collect(),
            })
            .collect();
        let json = Json {
            version: JSON_VERSION,
            npushmem: env!("CARGO_PKG_VERSION"),
            pes: self.pes,
            cores: self.cores,
            emulated: self.emulated,
            clock: if self.modelled { "modelled" } else { "wall" },
            figures,
            costs: &self.costs,
        };
        serde_json::to_string_pretty(&json)
            .map_err(|error| Failure::failed(format!("JSON: {error}")))
    }
}

fn save(option: &str, path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::input(format!("{option} {}: {error}", path.display())))
}

/// A row a place on the x axis, a column a series.
fn table(figure: &Figure) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(
        std::iter::once(figure.x.label.to_owned())
            .chain(figure.series.iter().map(|series| series.label.clone())),
    );
    for x in figure.xs() {
        let cells = figure.series.iter().map(|series| {
            let point = series.points.iter().find(|point| point.x == x);
            point.map_or_else(String::new, |point| cell(figure.y.unit, point))
        });
        table.add_row(std::iter::once(figure.x_text(x)).chain(cells));
    }
    let first = usize::from(figure.x.unit == Unit::Name);
    for column in first..=figure.series.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// "1.23 us (1.20 - 1.31)": the quartiles without their unit where it is the median's.
fn cell(unit: Unit, point: &Point) -> String {
    let Summary { median, low, high } = point.summary();
    let text = unit.text(median);
    if low == high {
        return text;
    }
    let suffix = text.split_once(' ').map_or("", |(_, suffix)| suffix);
    let bare = |value: f64| {
        let text = unit.text(value);
        match text.split_once(' ') {
            Some((digits, own)) if own == suffix => digits.to_owned(),
            _ => text,
        }
    };
    format!("{text} ({} - {})", bare(low), bare(high))
}

#[cfg(test)]
mod tests {
    use super::super::figure::Axis;
    use super::*;

    fn report(modelled: bool) -> Report {
        let x = Axis {
            label: "message size",
            unit: Unit::Bytes,
        };
        let y = Axis {
            label: "latency",
            unit: Unit::Seconds,
        };
        let mut figure = Figure::new("put-latency", "Put latency", "until visible", x, y);
        figure.series("roce").points.push(Point {
            x: 8,
            name: None,
            samples: vec![2e-6, 1e-6, 3e-6],
        });
        Report {
            pes: 2,
            cores: 1,
            emulated: true,
            modelled,
            figures: vec![figure],
            costs: Vec::new(),
        }
    }

    #[test]
    fn a_cell_has_median_and_quartiles_in_one_unit() {
        let point = |samples: &[f64]| Point {
            x: 0,
            name: None,
            samples: samples.into(),
        };
        assert_eq!(
            cell(Unit::Seconds, &point(&[1e-6, 2e-6, 3e-6])),
            "2.00 us (1.50 - 2.50)"
        );
        assert_eq!(
            cell(Unit::Seconds, &point(&[0.5e-6, 2e-6, 3e-6])),
            "2.00 us (1.25 - 2.50)"
        );
        assert_eq!(
            cell(Unit::Seconds, &point(&[0.1e-6, 0.9e-6, 3e-6])),
            "900 ns (500 - 1.95 us)"
        );
        assert_eq!(cell(Unit::BytesPerSecond, &point(&[2e9])), "2.00 GB/s");
    }

    #[test]
    fn the_json_says_which_clock_and_every_sample() {
        let value: serde_json::Value = serde_json::from_str(&report(true).json().unwrap()).unwrap();
        assert_eq!(value["clock"], "modelled");
        let figure = &value["figures"][0];
        assert_eq!(figure["x"]["unit"], "bytes");
        assert_eq!(figure["y"]["unit"], "seconds");
        let point = &figure["series"][0]["points"][0];
        assert_eq!(
            (point["x"].as_u64(), point["median"].as_f64()),
            (Some(8), Some(2e-6))
        );
        assert_eq!(point["samples"].as_array().map(Vec::len), Some(3));
    }

    #[test]
    fn several_figures_get_files_of_their_own() {
        let mut report = report(false);
        let path = |report: &Report| report.plot_path(Path::new("/tmp/x.svg"), &report.figures[0]);
        assert_eq!(path(&report), Path::new("/tmp/x.svg"));
        report.figures.push(report.figures[0].clone());
        assert_eq!(path(&report), Path::new("/tmp/x-put-latency.svg"));
    }

    #[test]
    fn modelled_figures_are_called_so() {
        assert_eq!(
            (report(true).clock(), report(false).clock()),
            ("modelled", "emulated")
        );
        assert!(report(true).subtitle().starts_with("modelled"));
        assert!(report(true).foot().starts_with("Modelled"));
    }
}
