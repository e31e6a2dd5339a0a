//! Draws the readings: one group of bars for each figure, on a logarithmic scale.

use std::fmt::{Error, Write as _};

use guest_wire::report::ProxyReport;

use super::table::{ROWS, Row, size};

/// Width of the picture.
const WIDTH: f64 = 980.0;
const LEFT: f64 = 300.0;
/// Length of the longest bar.
const LENGTH: f64 = 500.0;
/// Height above the first figure.
const TOP: f64 = 66.0;
/// Height of one bar.
const BAR: f64 = 14.0;
/// Height between two figures.
const GAP: f64 = 12.0;
/// Powers of ten between the shortest bar and the longest.
const DECADES: f64 = 6.0;

/// Draws the readings of the largest cluster.
pub(super) fn draw(readings: &[ProxyReport], title: &str) -> Result<String, Error> {
    let largest = readings.iter().map(|proxy| proxy.services).max();
    let proxies: Vec<&ProxyReport> = readings
        .iter()
        .filter(|proxy| Some(proxy.services) == largest)
        .collect();
    let group = proxies.iter().fold(GAP, |height, _| height + BAR);
    let height = ROWS.iter().fold(TOP + GAP, |height, _| height + group);
    let mut svg = String::new();
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"#1b1f24\">\n\
         <title>cargo xtask bench --kubernetes</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"16\" font-weight=\"600\">{} Services: shorter is better; logarithmic: a sixth of the width is ten \
         times as much</text>\n<text x=\"16\" y=\"46\" fill=\"#57606a\">{title}</text>",
        proxies
            .first()
            .map_or_else(String::new, |proxy| size(proxy))
    )?;
    let mut top = TOP;
    for row in &ROWS {
        draw_row(&mut svg, row, &proxies, top)?;
        top += group;
    }
    writeln!(svg, "</svg>")?;
    Ok(svg)
}

fn draw_row(svg: &mut String, row: &Row, proxies: &[&ProxyReport], top: f64) -> Result<(), Error> {
    writeln!(
        svg,
        "<text x=\"16\" y=\"{}\" font-weight=\"600\">{}</text>",
        top + 11.0,
        row.name
    )?;
    let most = proxies
        .iter()
        .map(|proxy| (row.value)(proxy))
        .fold(0.0, f64::max);
    let mut y = top;
    for proxy in proxies {
        let width = length((row.value)(proxy), most);
        let fill = if proxy.name == "ipvs-topo" {
            "#08519c"
        } else {
            "#b0b7bf"
        };
        writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" fill=\"{fill}\"/>\
             <text x=\"{:.1}\" y=\"{}\" font-size=\"11\">{} {}</text>",
            BAR - 2.0,
            LEFT + width + 5.0,
            y + BAR - 3.0,
            proxy.name,
            row.cell(proxy)
        )?;
        y += BAR;
    }
    Ok(())
}

/// Returns the length of the bar for `value`, where `most` has the longest bar.
fn length(value: f64, most: f64) -> f64 {
    let below = (most / value).log10();
    LENGTH * ((DECADES - below) / DECADES).clamp(0.01, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_times_as_much_is_one_grid_line_longer() {
        let step = LENGTH / DECADES;
        assert!((length(10.0, 10.0) - LENGTH).abs() < 1e-9);
        assert!((length(10.0, 10.0) - length(1.0, 10.0) - step).abs() < 1e-9);
        assert!(length(0.0, 10.0) > 0.0, "nothing is a line, too");
    }
}
