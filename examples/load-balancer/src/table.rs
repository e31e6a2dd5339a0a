//! Formats what the kernel holds as an aligned table.

use std::fmt::Write as _;

use ipvs_netlink::{DestinationEntry, ServiceEntry};

/// The heads of the columns. The columns from [`FIRST_NUMBER`] on are aligned to the right.
const HEADS: [&str; 8] = [
    "VIRTUAL SERVER",
    "SCHEDULER",
    "PERSISTENCE",
    "REAL SERVER",
    "FORWARD",
    "WEIGHT",
    "ACTIVE",
    "INACTIVE",
];

const FIRST_NUMBER: usize = 5;

/// One line of the table.
pub type Row = [String; 8];

/// One row for each real server; a virtual server stands in the first row of its real servers.
///
/// Sorts the entries by address: the kernel lists what came last first.
pub fn rows(mut entries: Vec<(ServiceEntry, Vec<DestinationEntry>)>) -> Vec<Row> {
    entries.sort_by_key(|(entry, _)| entry.service.id);
    for (_, real_servers) in &mut entries {
        real_servers.sort_by_key(|entry| entry.destination.id());
    }
    let mut rows = Vec::new();
    for (entry, real_servers) in &entries {
        let service = &entry.service;
        let persistence = service.persistence();
        let mut left = [
            service.id.to_string(),
            service.scheduler.clone(),
            persistence.map_or("-".to_owned(), |seconds| format!("{seconds} s")),
        ];
        if real_servers.is_empty() {
            let [id, scheduler, persistence] = std::mem::take(&mut left);
            let none = || "-".to_owned();
            rows.push([
                id,
                scheduler,
                persistence,
                none(),
                none(),
                none(),
                none(),
                none(),
            ]);
        }
        for entry in real_servers {
            let real = &entry.destination;
            let [id, scheduler, persistence] = std::mem::take(&mut left);
            rows.push([
                id,
                scheduler,
                persistence,
                real.id().to_string(),
                real.forward.to_string(),
                real.weight.to_string(),
                entry.active.to_string(),
                entry.inactive.to_string(),
            ]);
        }
    }
    rows
}

/// The table with its heads, or one line that says that there is nothing.
pub fn format(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "the kernel has no virtual servers\n".to_owned();
    }
    let heads = HEADS.map(str::to_owned);
    let lines = || std::iter::once(&heads).chain(rows);
    let mut widths = [0; HEADS.len()];
    for line in lines() {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.len().max(*width);
        }
    }
    let mut text = String::new();
    for line in lines() {
        let mut printed = String::new();
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            // Writing to a String cannot fail.
            let _written = if column < FIRST_NUMBER {
                write!(printed, "{gap}{cell:<width$}")
            } else {
                write!(printed, "{gap}{cell:>width$}")
            };
        }
        text.push_str(printed.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str) -> Row {
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().to_owned()).collect();
        cells.try_into().unwrap()
    }

    #[test]
    fn columns_are_aligned_numbers_to_the_right() {
        let rows = [
            row("TCP 192.0.2.10:80|wrr|-|10.0.0.1:8080|masquerade|80|3|120"),
            row("|||10.0.0.22:8080|route|5|0|0"),
        ];
        let expected = "\
VIRTUAL SERVER     SCHEDULER  PERSISTENCE  REAL SERVER     FORWARD     WEIGHT  ACTIVE  INACTIVE
TCP 192.0.2.10:80  wrr        -            10.0.0.1:8080   masquerade      80       3       120
                                           10.0.0.22:8080  route            5       0         0
";
        assert_eq!(format(&rows), expected);
    }

    #[test]
    fn an_empty_table_says_so() {
        assert_eq!(format(&[]), "the kernel has no virtual servers\n");
    }
}
