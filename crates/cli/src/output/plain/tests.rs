//! Hostile text in every field of every view must not control the terminal.

use agent_api::status::StatusView;
use agent_api::view::ExplainView;
use cluster::text::is_hidden;
use serde_json::{Value, json};

use crate::output::server::Detail;
use crate::output::{print, stages, summary};

/// A window title, a cleared screen, a forged row, reversed text, and a second forged row.
const ATTACK: &str =
    "x\u{1b}]0;owned\u{7}\u{1b}[2J\nforged row\r\u{202e}desrever\u{2028}forged\u{9b}2J";

/// `view` with the attack in place of each `x`.
fn hostile(view: Value) -> Value {
    match view {
        Value::String(text) if text == "x" => ATTACK.into(),
        Value::Array(items) => items.into_iter().map(hostile).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key, hostile(value)))
            .collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

fn warning() -> Value {
    json!({"code": "x", "file": "x", "line": 1, "object": "x", "field": "x", "message": "x", "remedy": "x", "text": "x"})
}

fn server() -> Value {
    let place = json!({"address": "192.0.2.1", "port": 80, "node": "x", "zone": "x", "level": "x", "weight": 1,
        "share": 1.0, "state": "x", "reason": "x", "code": "x", "words": "x"});
    json!({"service": "x", "portName": "x", "kind": "x", "protocol": "x", "address": "10.96.0.1", "port": 80,
        "scheduler": "x", "persistenceSeconds": 0,
        "policy": {"source": "x", "mode": "x", "words": "x", "levels": [
            {"level": "x", "usable": 1, "total": 1, "desired": 1.0, "share": 1.0, "programmed": 1.0}]},
        "notes": [{"code": "x", "stage": "x", "words": "x"}], "refusal": "x", "refusalCode": "x",
        "realServers": [place], "excluded": [place],
        "kernel": {"state": "x", "error": "x", "attempts": 1}})
}

fn explained() -> ExplainView {
    let mut view = server();
    let more = json!({"decidedBy": {"source": "x", "policy": "x", "words": "x"},
        "lost": [{"source": "x", "policy": "x", "words": "x", "why": "x", "code": "x"}],
        "stages": [{"stage": "S0", "name": "usable", "endpointsBefore": 1, "endpointsAfter": 0, "lines": ["x"]}],
        "schedulerNote": "x",
        "node": {"name": "x", "known": true, "labels": {"example.com/rack": "x"}, "missing": ["x"]},
        "whatIf": [{"change": "x", "effect": "x"}], "warnings": [warning()]});
    let fields = view.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    serde_json::from_value(hostile(view)).unwrap()
}

fn status() -> StatusView {
    let view = json!({"node": "x", "agent": {"version": "x", "pid": 1, "uptimeSeconds": 1},
        "input": {"source": "x", "ready": true, "services": 1, "endpoints": 1, "skipped": {"x": 1},
            "lastChangeSeconds": 1, "collections": [
                {"name": "x", "state": "listing", "objects": 1, "mapGap": "x"}]},
        "kernel": {"inSync": true, "virtualServers": 1, "realServers": 1, "draining": 0, "waiting": 0,
            "lastPassSeconds": 1, "oldestPendingSeconds": null, "routes": ["x"]},
        "foreign": [{"kind": "x", "what": "x"}], "warnings": [warning()],
        "nodeWarnings": [{"code": "x", "text": "x"}],
        "virtualServers": [server()],
        "notProgrammed": [{"service": "x", "field": "x", "reason": "x"}], "findings": [warning()]});
    serde_json::from_value(hostile(view)).unwrap()
}

/// Without colours, no control character is left and no line begins with the forged text.
#[track_caller]
fn harmless(text: &str) {
    let colours = ["0", "1", "2", "31", "32", "33", "39"];
    let text = colours.iter().fold(text.to_owned(), |text, code| {
        text.replace(&format!("\u{1b}[{code}m"), "")
    });
    let hidden = text.chars().find(|one| is_hidden(*one) && *one != '\n');
    assert_eq!(hidden, None, "{text}");
    for line in text.lines() {
        assert!(!line.trim_start().starts_with("forged row"), "{text}");
    }
}

#[test]
fn no_text_from_a_cluster_can_control_a_terminal_or_forge_a_table_row() {
    for width in [Some(80), Some(200), None] {
        for detail in [Detail::Planned, Detail::Live, Detail::Wide] {
            harmless(&summary::status(&status(), detail, width));
        }
        // A narrow terminal may wrap before `forged row`, because the words are part of a sentence.
        let text = stages::text(&[explained()], width.filter(|width| *width > 80));
        harmless(&text);
    }
    harmless(&print::json(&status()).unwrap());
}
