//! The figures of one moment, gathered from the loop.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::figures::Figures;
use super::http::AsyncFigures;
use super::process;
use crate::state::{AgentHandle, FamilyCounts, Pulse, Surroundings};

impl AsyncFigures for AgentHandle {
    /// What the loop published last; what only it knows is asked, and left out if it is stopping.
    async fn figures(&self) -> Figures {
        let pulse = self.pulse();
        let mut figures = of_pulse(&pulse);
        if let Ok(surroundings) = self.surroundings().await {
            add_surroundings(&mut figures, &surroundings);
        }
        figures.process = process::read();
        figures
    }
}

fn of_pulse(pulse: &Pulse) -> Figures {
    let families = [("IPv4", pulse.v4), ("IPv6", pulse.v6)];
    let states = |(family, counts): (&'static str, FamilyCounts)| {
        [
            ((family, "active"), counts.active),
            ((family, "draining"), counts.draining),
        ]
    };
    let both = |time: Option<SystemTime>| -> BTreeMap<&'static str, f64> {
        let seconds = time.map(since_1970);
        families
            .iter()
            .filter_map(|(family, _)| Some((*family, seconds?)))
            .collect()
    };
    Figures {
        virtual_servers: families
            .map(|(family, counts)| (family, counts.virtual_servers))
            .into(),
        real_servers: families.into_iter().flat_map(states).collect(),
        foreign: [("virtual-server", pulse.foreign)].into(),
        waiting: pulse.waiting,
        last_pass: both(pulse.last_pass),
        last_queued: both(pulse.last_queued),
        oldest_pending_seconds: pulse.oldest_pending.map_or(0.0, age),
        objects: [
            ("Service".to_owned(), pulse.services),
            ("Endpoint".to_owned(), pulse.endpoints),
        ]
        .into(),
        input_ready: pulse.input_ready,
        ..Figures::default()
    }
}

fn add_surroundings(figures: &mut Figures, surroundings: &Surroundings) {
    figures
        .foreign
        .insert("route", surroundings.foreign_routes.len() as u64);
    figures
        .foreign
        .insert("table", surroundings.foreign_tables.len() as u64);
    for warning in &surroundings.input_warnings {
        let code = crate::output::describe::warning(warning).code;
        *figures.warnings.entry(code).or_default() += 1;
    }
    let node = surroundings.warnings.len() as u64;
    if node > 0 {
        figures.warnings.insert("Node".to_owned(), node);
    }
}

fn since_1970(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

fn age(time: SystemTime) -> f64 {
    time.elapsed().unwrap_or_default().as_secs_f64()
}
