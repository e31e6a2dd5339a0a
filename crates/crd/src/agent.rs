//! `TopologyAgent`: what the agent of one Node reports.

use super::property::{
    Need, OBJECT_NAME, Object, PROSE, PrinterColumn, Property, Resource, Shape, Word,
};
use super::status::{AGE, COUNT, GENERATION, SERVICE, column, optional, required};

/// How many fallbacks one report names; beyond that they are only counted.
pub const MAX_FALLBACKS: usize = 64;
/// How many policies, and how many drains, one report names.
pub const MAX_REPORTED: usize = 512;
/// How many warnings of the Node one report names.
pub const MAX_WARNINGS: usize = 16;
/// What the warnings of a report take at most, in bytes of JSON; beside the other lists.
pub const MAX_WARNING_BYTES: usize = 4 * 1024;
/// The most bytes of JSON that the lists of policies, drains and fallbacks of one report take.
///
/// With more nodes it is less, down to [`MIN_REPORT_BYTES`].
pub const MAX_REPORT_BYTES: usize = 128 * 1024;
/// What the lists of a report may take in any cluster, in bytes of JSON.
pub const MIN_REPORT_BYTES: usize = 16 * 1024;

/// The kind `TopologyAgent`.
pub(crate) const AGENT: Resource = Resource {
    kind: "TopologyAgent",
    plural: "topologyagents",
    short: "tagent",
    namespaced: false,
    noun: "report",
    about: "What the agent of the Node of the same name does: which policies and drains decide there, and where it had to do something else than asked. Each agent writes its own when something changes, at most twice a minute, and less often in a large cluster; where only numbers have changed, every 10 minutes.",
    spec: Object::NOTHING,
    status: Object {
        parts: &[STATUS],
        rules: &[],
        atomic: false,
    },
    status_by: "the agent",
    columns: COLUMNS,
};

const COLUMNS: &[PrinterColumn] = &[
    column("Phase", ".status.phase", "How it goes."),
    column("Version", ".status.version", "The version of the agent."),
    count(
        "Services",
        ".status.counts.services",
        "Services that it serves.",
    ),
    count(
        "Fallbacks",
        ".status.counts.fallbacks",
        "Services that get something else than asked.",
    ),
    column(
        "Warning",
        ".status.warnings[0].code",
        "What is wrong with the Node itself.",
    ),
    PrinterColumn {
        wide: true,
        ..count(
            "Virtual",
            ".status.counts.virtualServers",
            "Virtual servers in the kernel.",
        )
    },
    PrinterColumn {
        wide: true,
        ..count(
            "Failed",
            ".status.counts.failed",
            "Virtual servers, routes and tables that failed, to be tried again.",
        )
    },
    AGE,
];

const fn count(name: &'static str, path: &'static str, about: &'static str) -> PrinterColumn {
    PrinterColumn {
        kind: "integer",
        ..column(name, path, about)
    }
}

const STATUS: &[Property] = &[
    required("version", Shape::Text(PROSE), "The version of the agent."),
    required(
        "phase",
        Shape::Word(&[
            Word {
                name: "Starting",
                about: "some input has not finished its first list",
            },
            Word {
                name: "Serving",
                about: "everything is programmed",
            },
            Word {
                name: "Degraded",
                about: "the kernel refuses something, or what the API server says may be stale",
            },
        ]),
        "How it goes.",
    ),
    optional(
        "policies",
        list(&POLICY, MAX_REPORTED),
        "The policies that decide for a Service on the Node, and of which generation; as many of each namespace as have room.",
    ),
    optional(
        "drains",
        list(&DRAINED, MAX_REPORTED),
        "The drains that it acts by, and of which generation; as many as have room.",
    ),
    optional(
        "fallbacks",
        list(&FALLBACK, MAX_FALLBACKS),
        "Services that get something else than asked, the latest first; as many of each namespace as have room.",
    ),
    optional(
        "warnings",
        list(&WARNING, MAX_WARNINGS),
        "What is wrong with the Node itself, as far as there is room: a kube-proxy beside the agent, a kernel that refuses.",
    ),
    optional("counts", Shape::Object(&COUNTS), "How much there is."),
];

const fn list(of: &'static Shape, most: usize) -> Shape {
    Shape::List {
        of,
        least: 0,
        most,
        set: false,
    }
}

/// What names an object, and which writing of it.
const NAMED: &[Property] = &[
    required("name", Shape::Text(OBJECT_NAME), "Its name."),
    required("generation", GENERATION, "The generation of its spec."),
];

const POLICY: Shape = Shape::Object(&Object {
    parts: &[
        &[
            required(
                "kind",
                Shape::Word(&[
                    Word {
                        name: "ClusterTopologyPolicy",
                        about: "",
                    },
                    Word {
                        name: "TopologyPolicy",
                        about: "",
                    },
                ]),
                "Its kind.",
            ),
            optional(
                "namespace",
                Shape::Text(OBJECT_NAME),
                "Its namespace, if it has one.",
            ),
        ],
        NAMED,
        &[optional(
            "services",
            COUNT,
            "How many Services it decides for on the Node.",
        )],
    ],
    rules: &[],
    atomic: false,
});

const DRAINED: Shape = Shape::Object(&Object {
    parts: &[
        NAMED,
        &[
            optional(
                "endpoints",
                COUNT,
                "How many endpoints take no new connections because of it.",
            ),
            optional(
                "servicesSkipped",
                COUNT,
                "How many Services it passes over.",
            ),
        ],
    ],
    rules: &[],
    atomic: false,
});

const FALLBACK: Shape = Shape::Object(&Object {
    parts: &[&[
        SERVICE,
        optional(
            "policy",
            Shape::Text(PROSE),
            "The policy that asked, such as ClusterTopologyPolicy/near or TopologyPolicy/shop/near; absent = annotations of the Service.",
        ),
        required(
            "reason",
            Shape::Word(REASONS),
            "Why; the gravest, if there are several.",
        ),
        optional(
            "from",
            Shape::Text(PROSE),
            "What was asked: a mode; absent where annotations that are not valid asked.",
        ),
        required(
            "to",
            Shape::Text(PROSE),
            "What decides now: a mode, Uniform or Nothing.",
        ),
        required("since", Shape::Time, "Since when."),
    ]],
    rules: &[],
    atomic: false,
});

const WARNING: Shape = Shape::Object(&Object {
    parts: &[&[
        required(
            "code",
            Shape::Text(PROSE),
            "What it is about, such as OtherProxy; docs/messages.md explains every code.",
        ),
        required(
            "message",
            Shape::Text(PROSE),
            "What is wrong, what follows from it, and what to do.",
        ),
    ]],
    rules: &[],
    atomic: false,
});

/// Why a Service gets something else than asked.
const REASONS: &[Word] = &[
    Word {
        name: "Empty",
        about: "no level has an endpoint but *",
    },
    Word {
        name: "BelowMin",
        about: "a level has fewer ready endpoints than it needs",
    },
    Word {
        name: "Panic",
        about: "too few endpoints are ready altogether",
    },
    Word {
        name: "NodeUnknown",
        about: "the Node object is not known",
    },
    Word {
        name: "LevelUnknown",
        about: "no Node has the label of a level",
    },
    Word {
        name: "NoMatch",
        about: "nothing is left inside the boundary",
    },
    Word {
        name: "NotAllowed",
        about: "ownerLimits of a cluster policy do not allow the mode of the annotations",
    },
    Word {
        name: "Invalid",
        about: "an annotation of the Service is not valid, or names a policy that does not exist, and is not used",
    },
    Word {
        name: "DrainIgnored",
        about: "a drain would have left nothing",
    },
    Word {
        name: "SchedulerMissing",
        about: "the node's kernel does not have the scheduler, wrr is used",
    },
    Word {
        name: "Clipped",
        about: "ownerLimits of a cluster policy do not allow so small a max-overload",
    },
    Word {
        name: "WeightClamped",
        about: "no whole numbers give the shares under the scheduler",
    },
];

const COUNTS: Object = Object {
    parts: &[&[
        counted("services", "Services that it serves."),
        counted("virtualServers", "Virtual servers in the kernel."),
        counted("realServers", "Real servers in the kernel."),
        counted(
            "failed",
            "Virtual servers, routes and tables that failed, to be tried again.",
        ),
        counted(
            "policies",
            "Policies that decide for a Service, listed above or not.",
        ),
        counted(
            "fallbacks",
            "Services that get something else than asked, listed above or not.",
        ),
    ]],
    rules: &[],
    atomic: false,
};

const fn counted(name: &'static str, about: &'static str) -> Property {
    Property {
        name,
        shape: COUNT,
        need: Need::Number(0),
        about,
    }
}
