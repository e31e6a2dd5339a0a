//! What the controller says of an object. The reader does not look at it.

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
    about: "Accepted: the object is valid and selects something. Programmed: every node acts by it. Degraded: something about it cannot be had as asked. LevelsKnown: some node has each label that a policy uses.",
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
            "Whether it holds.",
        ),
        required("reason", Shape::Text(PROSE), "Why, in one word."),
        required("message", Shape::Text(LONG), "Why, in a sentence."),
        required("lastTransitionTime", Shape::Time, "Since when."),
        optional(
            "observedGeneration",
            GENERATION,
            "The generation of the spec that was judged.",
        ),
    ]],
    rules: &[],
    atomic: false,
};

pub(super) const GENERATION: Shape = Shape::Number {
    least: 0,
    // The largest whole number that JSON readers agree on.
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

/// Of the two kinds of policies.
pub(crate) const POLICY_STATUS: Object = Object {
    parts: &[&[
        CONDITIONS,
        optional("matchedServices", COUNT, "How many Services it is for."),
        optional(
            "programmedNodes",
            Shape::Text(PROSE),
            "Nodes that act by it, of all: 57/60.",
        ),
        optional(
            "lastTransition",
            Shape::Object(&Object {
                parts: &[&[
                    SERVICE,
                    required(
                        "from",
                        Shape::Text(PROSE),
                        "What decided before: a mode, or Uniform.",
                    ),
                    required("to", Shape::Text(PROSE), "What decides now."),
                    required(
                        "reason",
                        Shape::Text(PROSE),
                        "Why, in one word: PanicThreshold.",
                    ),
                ]],
                rules: &[],
                atomic: false,
            }),
            "The last time that a Service fell back to something else, or came back.",
        ),
    ]],
    rules: &[],
    atomic: false,
};

/// Of drains.
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
                    about: "they take no new connections",
                },
                Word {
                    name: "Expired",
                    about: "it is over",
                },
                Word {
                    name: "Refused",
                    about: "it is not acted upon; the condition Accepted says why",
                },
            ]),
            "Where it stands.",
        ),
        optional(
            "endpointsDrained",
            COUNT,
            "How many endpoints take no new connections because of it.",
        ),
        optional(
            "servicesSkipped",
            COUNT,
            "How many Services it passes over, because nothing else remains or they are hard.",
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
    "Whether it is valid and acted upon.",
);
const PROGRAMMED: PrinterColumn =
    column("Nodes", ".status.programmedNodes", "Nodes that act by it.");
const SERVICES: PrinterColumn = PrinterColumn {
    kind: "integer",
    ..column("Services", ".status.matchedServices", "Services it is for.")
};
const MODE: PrinterColumn = column("Mode", ".spec.mode", "What it means as a whole.");
const PRIORITY: PrinterColumn = PrinterColumn {
    kind: "integer",
    ..column("Priority", ".spec.priority", "The higher wins.")
};
pub(super) const AGE: PrinterColumn = PrinterColumn {
    kind: "date",
    ..column("Age", ".metadata.creationTimestamp", "How long it exists.")
};

/// What `kubectl get tp` shows.
pub(crate) const POLICY_COLUMNS: &[PrinterColumn] =
    &[MODE, PRIORITY, ACCEPTED, SERVICES, PROGRAMMED, AGE];

/// What `kubectl get ctp` shows.
pub(crate) const CLUSTER_POLICY_COLUMNS: &[PrinterColumn] = &[
    MODE,
    PRIORITY,
    column(
        "Enforcement",
        ".spec.enforcement",
        "Whether it beats annotations.",
    ),
    ACCEPTED,
    SERVICES,
    PROGRAMMED,
    AGE,
];

/// What `kubectl get tdrain` shows.
pub(crate) const DRAIN_COLUMNS: &[PrinterColumn] = &[
    column("Key", ".spec.match.key", "What the domains are values of."),
    column("Values", ".spec.match.values", "The domains."),
    column("Scope", ".spec.scope", "Whom it is for."),
    column("Phase", ".status.phase", "Where it stands."),
    column("Expires", ".spec.expiresAt", "When it ends."),
    PrinterColumn {
        wide: true,
        ..column("Reason", ".spec.reason", "Why.")
    },
    AGE,
];
