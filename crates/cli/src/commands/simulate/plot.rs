//! The plot: for each policy, the share of nodes on the new version over time. Owns where things are and what they look
//! like; a picture without scripts or fonts of its own.

mod curve;
mod scale;
mod svg;

use curve::Curve;
use scale::Scale;
use svg::{Anchor, Svg};

use super::trial::Trials;
use crate::args::Simulate;
use crate::show::time::length;

/// The width of the picture, and how high the part with the axes is.
const WIDTH: f64 = 960.0;
const PLOT_HEIGHT: f64 = 400.0;

/// The borders of the part with the axes.
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 32.0;
const TOP: f64 = 88.0;
const BOTTOM: f64 = TOP + PLOT_HEIGHT;

/// The height of a line of small text.
const LINE: f64 = 16.0;

/// The height of a line of the legend.
const ROW: f64 = 24.0;

/// Colours that people who see few colours tell apart (Okabe and Ito), darkened where they were too pale for a line.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc4c91", "#b58900", "#3a9bd0"];

/// How lines are broken, so that colour is not the only thing that tells them apart.
const DASHES: [&str; 3] = ["", "stroke-dasharray=\"9 4\"", "stroke-dasharray=\"2 3.5\""];

const INK: &str = "fill=\"#1f2328\"";
const FAINT: &str = "fill=\"#59636e\"";

/// Most letters of a policy's name in the legend.
const MOST_LETTERS: usize = 60;

/// Draws the trials.
pub(super) fn draw(args: &Simulate, trials: &[Trials]) -> String {
    let curves: Vec<Curve> = trials.iter().map(|trials| Curve::of(trials, args.nodes)).collect();
    let rows = scale::float(u64::try_from(curves.len() + 1).unwrap_or(u64::MAX));
    let height = BOTTOM + 72.0 + rows * ROW + 8.0;
    let longest = curves.iter().map(Curve::longest).max().unwrap_or_default();
    let highest = curves.iter().map(Curve::highest).fold(0.0, f64::max);
    let scale = Scale::new((LEFT, TOP), (RIGHT, BOTTOM), longest, highest);
    let title = format!("Share of {} nodes on the new version", args.nodes);
    let mut svg = Svg::new((WIDTH, height), &title, &subtitle(args));
    let frame =
        format!("width=\"{WIDTH}\" height=\"{height}\" rx=\"10\" fill=\"#fdfdfc\" stroke=\"#d1d9e0\"");
    svg.shape("rect", &frame);
    svg.text((LEFT, 38.0), Anchor::Start, &format!("font-size=\"20\" font-weight=\"600\" {INK}"), &title);
    svg.text((LEFT, 62.0), Anchor::Start, &format!("font-size=\"13\" {FAINT}"), &subtitle(args));
    axes(&mut svg, &scale);
    thresholds(&mut svg, &scale, &curves);
    for (place, curve) in curves.iter().enumerate() {
        curve.draw(&mut svg, &scale, (colour(place), dash(place)));
    }
    legend(&mut svg, &curves, args.runs);
    svg.finish()
}

fn colour(place: usize) -> &'static str {
    COLOURS.iter().cycle().nth(place).copied().unwrap_or_default()
}

fn dash(place: usize) -> &'static str {
    DASHES.iter().cycle().nth(place).copied().unwrap_or_default()
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
        parts.push(format!("{} runs", args.runs));
    }
    parts.push(format!("seed {}", args.seed));
    parts.join(" · ")
}

fn axes(svg: &mut Svg, scale: &Scale) {
    svg.group(&format!("font-size=\"12\" {FAINT}"));
    for (percent, word) in scale.percents() {
        let y = scale.y(percent);
        let style = if percent > 0.0 { "stroke=\"#e4e8ec\"" } else { "stroke=\"#59636e\"" };
        svg.stroke((LEFT, y), (RIGHT, y), style);
        svg.text((LEFT - 10.0, y + 4.0), Anchor::End, "", &word);
    }
    for (millis, word) in scale.times() {
        let x = scale.x(millis);
        svg.stroke((x, BOTTOM), (x, BOTTOM + 6.0), "stroke=\"#59636e\"");
        svg.text((x, BOTTOM + 22.0), Anchor::Middle, "", &word);
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.text((middle, BOTTOM + 44.0), Anchor::Middle, "font-size=\"13\"", "time since the start");
    let height = svg::number(f64::midpoint(TOP, BOTTOM));
    let turned = format!("font-size=\"13\" transform=\"rotate(-90 20 {height})\"");
    svg.text(
        (20.0, f64::midpoint(TOP, BOTTOM)),
        Anchor::Middle,
        &turned,
        "share of nodes on the new version",
    );
    svg.end();
}

/// A line for each share that some policy needs for a version to be good.
fn thresholds(svg: &mut Svg, scale: &Scale, curves: &[Curve]) {
    let mut needed: Vec<f64> = curves.iter().map(|curve| curve.needed).collect();
    needed.retain(|share| *share <= scale.shares.0);
    needed.sort_by(|one, other| other.total_cmp(one));
    needed.dedup_by(|one, other| (*one - *other).abs() < 0.05);
    let style = format!(
        "font-size=\"11\" {FAINT} paint-order=\"stroke\" stroke=\"#fdfdfc\" stroke-width=\"4\" stroke-linejoin=\"round\""
    );
    for near in needed.chunk_by(|above, below| scale.y(*below) - scale.y(*above) < LINE) {
        for share in near {
            let y = scale.y(*share);
            let dashed = "stroke=\"#59636e\" stroke-dasharray=\"5 4\" stroke-opacity=\"0.8\"";
            svg.stroke((LEFT, y), (RIGHT, y), dashed);
        }
        // Lines too close for a word each share one.
        let shares: Vec<_> = near.iter().map(|share| format!("{}%", svg::number(*share))).collect();
        let word = format!("{} needed to be good", shares.join(", "));
        let top = near.first().map(|share| scale.y(*share)).unwrap_or_default();
        svg.text((RIGHT - 6.0, top - 6.0), Anchor::End, &style, &word);
    }
}

fn legend(svg: &mut Svg, curves: &[Curve], runs: u32) {
    let mut y = BOTTOM + 76.0;
    svg.group(&format!("font-size=\"13\" {INK}"));
    for (place, curve) in curves.iter().enumerate() {
        let (colour, dash) = (colour(place), dash(place));
        let style = format!("stroke=\"{colour}\" stroke-width=\"2.5\" {dash}");
        svg.stroke((LEFT, y - 4.0), (LEFT + 34.0, y - 4.0), &style);
        let mut name: String = curve.name.chars().take(MOST_LETTERS).collect();
        if name.len() < curve.name.len() {
            name.push('…');
        }
        svg.text((LEFT + 46.0, y), Anchor::Start, "font-weight=\"600\"", &name);
        let mut result = format!("{} after {}", curve.result, length(curve.took));
        if let Some(touched) = curve.touched {
            result.push_str(&format!(", {touched} had the bad version"));
        }
        svg.text((RIGHT, y), Anchor::End, FAINT, &result);
        y += ROW;
    }
    svg.end();
    svg.group(&format!("font-size=\"12\" {FAINT}"));
    curve::cross(svg, (LEFT + 6.0, y - 4.0), "#59636e");
    svg.text((LEFT + 17.0, y), Anchor::Start, "", "nodes failed");
    curve::bad(svg, (LEFT + 116.0, y - 4.0), "#59636e");
    svg.text((LEFT + 127.0, y), Anchor::Start, "", "found bad");
    curve::good(svg, (LEFT + 213.0, y - 4.0), "#59636e");
    svg.text((LEFT + 225.0, y), Anchor::Start, "", "called good");
    if runs > 1 {
        let band = format!(
            "x=\"{}\" y=\"{}\" width=\"26\" height=\"10\" fill=\"#59636e\" fill-opacity=\"0.25\"",
            LEFT + 318.0,
            svg::number(y - 9.0)
        );
        svg.shape("rect", &band);
        svg.text(
            (LEFT + 352.0, y),
            Anchor::Start,
            "",
            "nine of ten runs; the line is the run of median length",
        );
    }
    svg.end();
}
