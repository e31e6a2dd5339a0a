//! Describes the status that the controller writes. The reader does not use it.

use super::property::{Need, Object, PROSE, PrinterColumn, Property, Shape, Text, Word};

pub(super) const COUNT: Shape = Shape::Number {
    least: 0,
    most: 2_147_483_647,
};

pub(super) const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Property {
    Property {
        name,
        shape,
        need: Need::Optional,
        about,
    }
}

pub(super) const fn required(name: &'static str, shape: Shape, about: &'static str) -> Property {
    Property {
        name,
        shape,
        need: Need::Required,
        about,
    }
}

const CONDITIONS: Property = Property {
    name: "conditions",
    shape: Shape::List {
        of: &Shape::Object(&CONDITION),
        least: 0,
        most: 16,
        set: false,
    },
    need: Need::Optional,
    about: "Accepted: the object is valid. Programmed: every node on which a policy decides uses it. Degraded: something in it cannot be applied as requested. LevelsKnown: some node has each label that a policy uses.",
};

const CONDITION: Object = Object {
    parts: &[&[
        required(
            "type",
            Shape::Text(PROSE),
            "Accepted, Programmed, Degraded or LevelsKnown.",
        ),
        required(
            "status",
            Shape::Word(&[
                Word {
                    name: "True",
                    about: "",
                },
                Word {
                    name: "False",
                    about: "",
                },
                Word {
                    name: "Unknown",
                    about: "",
                },
            ]),
            "Whether the condition is true.",
        ),
        required("reason", Shape::Text(PROSE), "The reason in one word."),
        required("message", Shape::Text(LONG), "The reason in a sentence."),
        required("lastTransitionTime", Shape::Time, "When this began."),
        optional(
            "observedGeneration",
            GENERATION,
            "The generation of the spec that was checked.",
        ),
    ]],
    rules: &[],
    atomic: false,
};

pub(super) const GENERATION: Shape = Shape::Number {
    least: 0,
    // The largest integer that all JSON readers support.
    most: 9_007_199_254_740_991,
};

pub(super) const SERVICE: Property = required(
    "service",
    Shape::Text(PROSE),
    "Namespace and name of the Service: shop/cart.",
);

const LONG: Text = Text {
    most: 32_768,
    ..PROSE
};

/// The status of both kinds of policies.
pub(crate) const POLICY_STATUS: Object = Object {
    parts: &[&[
        CONDITIONS,
        optional(
            "matchedServices",
            COUNT,
            "The number of Services that it decides for.",
        ),
        optional(
            "programmedNodes",
            Shape::Text(PROSE),
            "Nodes that use it, of all nodes: 57/60.",
        ),
        optional(
            "lastTransition",
            Shape::Object(&Object {
                parts: &[&[
                    SERVICE,
                    required(
                        "from",
                        Shape::Text(PROSE),
                        "What applied before: a mode, or Uniform.",
                    ),
                    required("to", Shape::Text(PROSE), "What applies now."),
                    required(
                        "reason",
                        Shape::Text(PROSE),
                        "The reason in one word: PanicThreshold.",
                    ),
                ]],
                rules: &[],
                atomic: false,
            }),
            "The last time that a Service fell back to something else, or recovered.",
        ),
    ]],
    rules: &[],
    atomic: false,
};

pub(crate) const DRAIN_STATUS: Object = Object {
    parts: &[&[
        CONDITIONS,
        optional(
            "phase",
            Shape::Word(&[
                Word {
                    name: "Ramping",
                    about: "the share of the domains is shrinking",
                },
                Word {
                    name: "Active",
                    about: "the domains take no new connections",
                },
                Word {
                    name: "Expired",
                    about: "the drain has ended",
                },
                Word {
                    name: "Refused",
                    about: "the drain is not applied; the condition Accepted has the reason",
                },
            ]),
            "The phase of the drain.",
        ),
        optional(
            "endpointsDrained",
            COUNT,
            "The number of endpoints that take no new connections because of it.",
        ),
        optional(
            "servicesSkipped",
            COUNT,
            "The number of Services that it skips, because they have no other endpoints or are hard.",
        ),
    ]],
    rules: &[],
    atomic: false,
};

pub(super) const fn column(
    name: &'static str,
    path: &'static str,
    about: &'static str,
) -> PrinterColumn {
    PrinterColumn {
        name,
        kind: "string",
        path,
        about,
        wide: false,
    }
}

const ACCEPTED: PrinterColumn = column(
    "Accepted",
    ".status.conditions[?(@.type==\"Accepted\")].status",
    "Whether it is valid and in use.",
);
const PROGRAMMED: PrinterColumn = column("Nodes", ".status.programmedNodes", "Nodes that use it.");
const SERVICES: PrinterColumn = PrinterColumn {
    kind: "integer",
    ..column(
        "Services",
        ".status.matchedServices",
        "Services that it decides for.",
    )
};
const MODE: PrinterColumn = column("Mode", ".spec.mode", "How the policy chooses endpoints.");
const PRIORITY: PrinterColumn = PrinterColumn {
    kind: "integer",
    ..column("Priority", ".spec.priority", "The highest wins.")
};
pub(super) const AGE: PrinterColumn = PrinterColumn {
    kind: "date",
    ..column(
        "Age",
        ".metadata.creationTimestamp",
        "The age of the object.",
    )
};

/// The columns of `kubectl get tp`.
pub(crate) const POLICY_COLUMNS: &[PrinterColumn] =
    &[MODE, PRIORITY, ACCEPTED, SERVICES, PROGRAMMED, AGE];

/// The columns of `kubectl get ctp`.
pub(crate) const CLUSTER_POLICY_COLUMNS: &[PrinterColumn] = &[
    MODE,
    PRIORITY,
    column(
        "Enforcement",
        ".spec.enforcement",
        "Whether it takes precedence over annotations.",
    ),
    ACCEPTED,
    SERVICES,
    PROGRAMMED,
    AGE,
];

/// The columns of `kubectl get tdrain`.
pub(crate) const DRAIN_COLUMNS: &[PrinterColumn] = &[
    column(
        "Key",
        ".spec.match.key",
        "The label whose values are the domains.",
    ),
    column("Values", ".spec.match.values", "The domains."),
    column("Scope", ".spec.scope", "What the drain applies to."),
    column("Phase", ".status.phase", "The phase of the drain."),
    column("Expires", ".spec.expiresAt", "When it ends."),
    PrinterColumn {
        wide: true,
        ..column("Reason", ".spec.reason", "Why.")
    },
    AGE,
];
