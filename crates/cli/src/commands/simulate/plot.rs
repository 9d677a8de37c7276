//! The plot: for each policy, the share of nodes on the new version over time. Owns what it looks like.

mod curve;

use curve::{Curve, float};
use plotters::chart::{ChartBuilder, ChartContext, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, Cross, PathElement, Polygon, Text, TriangleMarker};
use plotters::prelude::SVGBackend;
use plotters::series::LineSeries;
use plotters::style::{BLACK, Color, IntoFont, RGBColor, ShapeStyle, WHITE};

use super::trial::Trials;
use crate::args::Simulate;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Why nothing was drawn. A picture in memory has no reason to fail.
pub(super) type PlotError = DrawingAreaErrorKind<std::io::Error>;

/// The size of the picture, in pixels.
const SIZE: (u32, u32) = (960, 600);

/// Colours that people who see few colours tell apart (Okabe and Ito), darkened where they were too pale for a line.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 76, 145),
    RGBColor(181, 137, 0),
    RGBColor(58, 155, 208),
];

const FAINT: RGBColor = RGBColor(89, 99, 110);
const FONT: &str = "sans-serif";

/// Units of the axis of time, in milliseconds, with the longest time that they are good for.
const UNITS: [(u64, u64, &str); 4] = [
    (300_000, 1_000, "seconds"),
    (18_000_000, 60_000, "minutes"),
    (432_000_000, 3_600_000, "hours"),
    (u64::MAX, 86_400_000, "days"),
];

/// Draws the trials as SVG.
pub(super) fn draw(args: &Simulate, trials: &[Trials]) -> Result<String, PlotError> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let curves: Vec<Curve> = trials.iter().map(|trials| Curve::of(trials, args.nodes)).collect();
    plot(&area, args, &curves)?;
    area.present()?;
    drop(area);
    Ok(svg)
}

/// The axis of time.
struct Times {
    /// The longest time, in milliseconds; at least 1.
    longest: u64,
    /// What one on the axis is, in milliseconds, and what that is called.
    unit: u64,
    name: &'static str,
}

impl Times {
    fn of(curves: &[Curve]) -> Self {
        let longest = curves.iter().map(Curve::longest).max().unwrap_or_default().max(1);
        let fits = UNITS.iter().find(|(most, ..)| longest <= *most);
        let (unit, name) = fits.map_or((1, "milliseconds"), |(_, unit, name)| (*unit, *name));
        Self { longest, unit, name }
    }

    /// Where a point is, whose time is in milliseconds.
    fn place(&self, (at, share): (u64, f64)) -> (f64, f64) {
        (float(at) / float(self.unit), share)
    }
}

fn plot(area: &Area<'_>, args: &Simulate, curves: &[Curve]) -> Result<(), PlotError> {
    let times = Times::of(curves);
    let (end, _) = times.place((times.longest, 0.0));
    let highest = curves.iter().map(Curve::highest).fold(1.0, f64::max);
    let title = format!("Share of {} nodes on the new version", args.nodes);
    let area =
        area.titled(&title, (FONT, 20))?.titled(&subtitle(args), (FONT, 13).into_font().color(&FAINT))?;
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..end, 0.0..(highest * 1.04).min(100.0))?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_desc(format!("{} since the start", times.name))
        .y_label_formatter(&|share| format!("{share}%"))
        .draw()?;
    needed(&mut chart, curves, end, highest)?;
    for (curve, colour) in curves.iter().zip(COLOURS.into_iter().cycle()) {
        draw_curve(&mut chart, curve, colour, &times)?;
    }
    // The corner that fewer lines end in.
    let high = curves.iter().filter(|curve| curve.last() > highest / 2.0).count();
    let corner = if high * 2 > curves.len() {
        SeriesLabelPosition::LowerRight
    } else {
        SeriesLabelPosition::UpperRight
    };
    legend(&mut chart, corner)
}

fn subtitle(args: &Simulate) -> String {
    let mut parts = vec![format!("a node takes {}", args.apply_time)];
    if args.failure_rate.parts() > 0 {
        parts.push(format!("{} fail", args.failure_rate));
    }
    if args.bad.parts() > 0 {
        parts.push(format!("a bad version that fails on {}", args.bad));
    }
    if args.unreachable_rate.parts() > 0 {
        parts.push(format!("{} silent", args.unreachable_rate));
    }
    if args.runs > 1 {
        parts.push(format!("{} runs: nine of ten as an area, the one of median length as a line", args.runs));
    }
    parts.push(format!("seed {}", args.seed));
    parts.join(" · ")
}

/// A line for each share that some policy needs for a version to be good.
fn needed(chart: &mut Chart<'_, '_>, curves: &[Curve], end: f64, highest: f64) -> Result<(), PlotError> {
    let mut shares: Vec<f64> = curves.iter().map(|curve| curve.needed).collect();
    shares.retain(|share| *share <= highest);
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let line = |share: &f64| PathElement::new(vec![(0.0, *share), (end, *share)], FAINT.mix(0.6));
    chart.draw_series(shares.iter().map(line))?;
    let text =
        |share: &f64| Text::new(format!("{share:.0}% needed to be good"), (end * 0.01, *share), (FONT, 11));
    chart.draw_series(shares.iter().map(text))?;
    Ok(())
}

fn draw_curve(
    chart: &mut Chart<'_, '_>,
    curve: &Curve,
    colour: RGBColor,
    times: &Times,
) -> Result<(), PlotError> {
    let place = |point| times.place(point);
    let thick = colour.stroke_width(2);
    let band: Vec<_> = curve.band().into_iter().map(place).collect();
    chart.draw_series((!band.is_empty()).then(|| Polygon::new(band, colour.mix(0.16))))?;
    chart
        .draw_series(LineSeries::new(curve.steps().into_iter().map(place), thick))?
        .label(&curve.title)
        .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 20, y)], thick));
    let failures = curve.failures(times.longest).into_iter();
    chart.draw_series(failures.map(|point| failed(place(point), thick)))?;
    chart.draw_series(curve.bad.map(|at| known_bad(place(curve.at(at)), colour)))?;
    chart.draw_series(curve.good.map(|at| called_good(place(curve.at(at)), colour)))?;
    Ok(())
}

fn failed<P>(at: P, style: ShapeStyle) -> Cross<P, i32> {
    Cross::new(at, 4, style)
}

fn known_bad<P>(at: P, colour: RGBColor) -> TriangleMarker<P, i32> {
    TriangleMarker::new(at, 7, colour.filled())
}

fn called_good<P>(at: P, colour: RGBColor) -> Circle<P, i32> {
    Circle::new(at, 5, colour.filled())
}

/// What the lines are, and the marks on them.
fn legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>, corner: SeriesLabelPosition) -> Result<(), PlotError> {
    let none = || std::iter::empty::<Circle<(f64, f64), i32>>();
    let thick = FAINT.stroke_width(2);
    chart.draw_series(none())?.label("nodes failed").legend(move |(x, y)| failed((x + 10, y), thick));
    chart.draw_series(none())?.label("known bad").legend(|(x, y)| known_bad((x + 10, y), FAINT));
    chart.draw_series(none())?.label("called good").legend(|(x, y)| called_good((x + 10, y), FAINT));
    chart
        .configure_series_labels()
        .position(corner)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .label_font((FONT, 13))
        .draw()
}
