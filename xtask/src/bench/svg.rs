//! Draws the figures. Every bar is relative to its target, so one line marks all targets.

use std::fmt::{Error, Write as _};

use guest_wire::report::Report;

use super::figures::{Figure, TargetScope, Unit};
use crate::thousands::thousands;

/// Width of the picture.
const WIDTH: f64 = 920.0;
const LEFT: f64 = 330.0;
/// The position of the target line.
const LIMIT: f64 = 690.0;
/// Longer bars are cut off here.
const RIGHT: f64 = 800.0;
/// Height of the part above the first figure.
const TOP: f64 = 84.0;
/// Height of one bar and the gap below it.
const BAR: f64 = 13.0;
/// Height between two figures.
const GAP: f64 = 20.0;
/// Fill of the bars, smallest cluster first; larger clusters use the last one.
const SHADES: [&str; 3] = ["#9ecae1", "#4292c6", "#08519c"];
/// Fill of a bar beyond its target.
const MISSED: &str = "#c0392b";

/// Draws the figures.
pub(crate) fn draw(report: &Report, figures: &[Figure]) -> Result<String, Error> {
    let group = height_of_group(report.sizes.len());
    let height = figures.iter().fold(TOP + 16.0, |height, _| height + group);
    let mut svg = String::new();
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"#1b1f24\">\n\
         <title>cargo xtask bench: every figure relative to its target</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#ffffff\"/>"
    )?;
    draw_head(&mut svg, report)?;
    let mut labels = String::new();
    let mut y = TOP;
    for figure in figures {
        draw_words(&mut svg, figure, y)?;
        draw_bars(&mut svg, &mut labels, figure, y)?;
        y += group;
    }
    // The line is above the bars, and the labels are above the line.
    writeln!(
        svg,
        "<line x1=\"{LIMIT}\" y1=\"{}\" x2=\"{LIMIT}\" y2=\"{}\" stroke=\"#1b1f24\" stroke-dasharray=\"4 3\"/>\n\
         {labels}</svg>",
        TOP - 12.0,
        y - GAP + 6.0
    )?;
    Ok(svg)
}

fn height_of_group(sizes: usize) -> f64 {
    (0..sizes)
        .fold(GAP, |height, _| height + BAR)
        .max(GAP + 30.0)
}

/// Draws title, legend, and the label of the target line.
fn draw_head(svg: &mut String, report: &Report) -> Result<(), Error> {
    writeln!(
        svg,
        "<text x=\"16\" y=\"26\" font-size=\"16\" font-weight=\"600\">Measured relative to the target: shorter is \
         better</text>\n<text x=\"16\" y=\"46\" fill=\"#57606a\">Linux {}, one QEMU guest without KVM, one run of \
         cargo xtask bench</text>\n<text x=\"{LIMIT}\" y=\"{}\" text-anchor=\"middle\" fill=\"#57606a\">target</text>",
        report.kernel,
        TOP - 16.0
    )?;
    let mut x = 16.0;
    for (size, shade) in report.sizes.iter().zip(shades()) {
        writeln!(
            svg,
            "<rect x=\"{x}\" y=\"55\" width=\"11\" height=\"11\" fill=\"{shade}\"/><text x=\"{}\" y=\"65\">{} x {}</text>",
            x + 16.0,
            thousands(size.services),
            report.endpoints
        )?;
        x += 106.0;
    }
    writeln!(
        svg,
        "<rect x=\"{x}\" y=\"55\" width=\"11\" height=\"11\" fill=\"{MISSED}\"/><text x=\"{}\" y=\"65\">beyond its \
         target</text>",
        x + 16.0
    )
}

fn shades() -> impl Iterator<Item = &'static str> {
    let last = SHADES.last().copied().unwrap_or(MISSED);
    SHADES.into_iter().chain(std::iter::repeat(last))
}

/// Draws the name of a figure, its target, and whether it is reached.
fn draw_words(svg: &mut String, figure: &Figure, top: f64) -> Result<(), Error> {
    let verdict = if figure.reached { "reached" } else { "missed" };
    let colour = if figure.reached { "#1a7f37" } else { MISSED };
    writeln!(
        svg,
        "<text x=\"16\" y=\"{}\" font-weight=\"600\">{}</text>\n<text x=\"16\" y=\"{}\" fill=\"#57606a\">at most {}\
         </text>\n<text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-weight=\"600\" fill=\"{colour}\">{verdict}</text>",
        top + 11.0,
        figure.name,
        top + 27.0,
        figure.unit.format(figure.target),
        WIDTH - 16.0,
        top + 11.0,
    )
}

/// Draws one bar for each cluster size, and appends their labels to `labels`.
fn draw_bars(
    svg: &mut String,
    labels: &mut String,
    figure: &Figure,
    top: f64,
) -> Result<(), Error> {
    let mut y = top;
    for (nth, (value, shade)) in figure.values.iter().zip(shades()).enumerate() {
        let judged = figure.scope == TargetScope::Every || nth + 1 == figure.values.len();
        let beyond = judged && value.value > figure.target;
        let fill = if beyond { MISSED } else { shade };
        let end = end_of_bar(figure.unit, value.value, figure.target);
        let width = end - LEFT;
        writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" fill=\"{fill}\"/>",
            BAR - 2.0
        )?;
        writeln!(
            labels,
            "<text x=\"{:.1}\" y=\"{}\" font-size=\"11\" stroke=\"#ffffff\" stroke-width=\"4\" \
             paint-order=\"stroke\">{}</text>",
            end + 5.0,
            y + BAR - 3.0,
            figure.unit.format(value.value)
        )?;
        y += BAR;
    }
    Ok(())
}

/// Returns the end of the bar for `value`: the target line if it equals its target.
fn end_of_bar(unit: Unit, value: f64, target: f64) -> f64 {
    // With a target of 0, every other value has the longest bar.
    let share = match unit {
        Unit::Count if target <= 0.0 && value > 0.0 => f64::INFINITY,
        Unit::Count if target <= 0.0 => 0.0,
        _ => value / target,
    };
    (LEFT + share * (LIMIT - LEFT)).clamp(LEFT + 1.0, RIGHT)
}

#[cfg(test)]
mod tests {
    use super::super::figures::{figures, tests::report};
    use super::*;

    #[test]
    fn a_value_at_its_target_ends_at_the_line() {
        let close = |left: f64, right: f64| (left - right).abs() < 1e-9;
        assert!(close(end_of_bar(Unit::Ratio, 1.15, 1.15), LIMIT));
        assert!(close(end_of_bar(Unit::Count, 0.0, 0.0), LEFT + 1.0));
        assert!(close(end_of_bar(Unit::Count, 1.0, 0.0), RIGHT));
        assert!(close(end_of_bar(Unit::Ratio, 99.0, 1.0), RIGHT));
    }

    #[test]
    fn a_miss_is_said_in_words_and_in_colour() {
        let report = report();
        let svg = draw(&report, &figures(&report)).unwrap();
        assert_eq!(
            svg.matches(">missed<").count(),
            1,
            "cold load at the largest size"
        );
        // The key, the verdict and the bar.
        assert_eq!(svg.matches(MISSED).count(), 3);
        assert_eq!(svg.matches("<rect").count(), 1 + 3 + 9 * 2);
    }
}
