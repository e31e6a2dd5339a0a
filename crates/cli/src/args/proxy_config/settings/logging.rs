//! Settings of the log, of which flags override the file, as for kube-proxy (KP-CF-01).

use telemetry::log::LogFormat;

use super::super::setting::ProxySetting as Setting;
use super::super::value::ValueKind;
use crate::args::values;

const ONE_STREAM: &str = "all lines go to standard error at once";
const LEVELS: ValueKind = ValueKind::Integer(0, i32::MAX as i64);

pub(super) const SETTINGS: &[Setting] = &[
    Setting::applied(
        ("logging.format", "logging-format"),
        ValueKind::Words(&["text", "json"]),
        "`--log-format`",
        |args, given| {
            if given.is_flag || args.log_format == LogFormat::default() {
                args.log_format = match given.text.as_str() {
                    "json" => LogFormat::Json,
                    _ => LogFormat::Text,
                };
            }
            Ok(None)
        },
    ),
    Setting::applied(
        ("logging.verbosity", "v"),
        LEVELS,
        "up to 3: changes and errors; 4 and 5: `-v`, every kernel write; 6 and more: `-vv`, everything",
        |args, given| {
            if given.is_flag || args.verbose.is_empty() {
                args.verbose = vec![values::verbosity(&given.text)?];
            }
            Ok(None)
        },
    ),
    Setting::reported(
        ("logging.vmodule[].filePattern", "vmodule"),
        ValueKind::Text,
        "the agent has no files of Go; set `RUST_LOG`, for example info,agent::reconcile=debug",
    ),
    Setting::silent(
        ("logging.vmodule[].verbosity", ""),
        LEVELS,
        "its file pattern is reported",
    ),
    // A duration as text, or a number of nanoseconds.
    Setting::silent(
        ("logging.flushFrequency", "log-flush-frequency"),
        ValueKind::Text,
        "the agent writes each line at once",
    ),
    Setting::silent(
        ("logging.options.text.splitStream", "log-text-split-stream"),
        ValueKind::Switch,
        ONE_STREAM,
    ),
    Setting::silent(
        (
            "logging.options.text.infoBufferSize",
            "log-text-info-buffer-size",
        ),
        ValueKind::Text,
        ONE_STREAM,
    ),
    Setting::silent(
        ("logging.options.json.splitStream", "log-json-split-stream"),
        ValueKind::Switch,
        ONE_STREAM,
    ),
    Setting::silent(
        (
            "logging.options.json.infoBufferSize",
            "log-json-info-buffer-size",
        ),
        ValueKind::Text,
        ONE_STREAM,
    ),
    Setting::silent(("", "logtostderr"), ValueKind::Switch, ONE_STREAM),
    Setting::silent(("", "alsologtostderr"), ValueKind::Switch, ONE_STREAM),
    Setting::silent(("", "stderrthreshold"), ValueKind::Text, ONE_STREAM),
];
