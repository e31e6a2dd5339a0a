//! Describes `TopologyAgent`, the report of the agent on one Node.

use super::property::{
    Need, OBJECT_NAME, Object, PROSE, PrinterColumn, Property, Resource, Shape, Word,
};
use super::status::{AGE, COUNT, GENERATION, SERVICE, column, optional, required};

/// The limit of fallbacks in one report. Others are only counted.
pub const MAX_FALLBACKS: usize = 64;
/// The limit of policies, and of drains, in one report.
pub const MAX_REPORTED: usize = 512;
/// The limit of warnings in one report.
pub const MAX_WARNINGS: usize = 16;
/// The limit of the warnings of a report, in bytes of JSON; separate from the other lists.
pub const MAX_WARNING_BYTES: usize = 4 * 1024;
/// The limit of the lists of policies, drains and fallbacks of one report together, in bytes of
/// JSON. It decreases with the number of nodes, down to [`MIN_REPORT_BYTES`].
pub const MAX_REPORT_BYTES: usize = 128 * 1024;
/// The limit of the lists of a report in a very large cluster, in bytes of JSON.
pub const MIN_REPORT_BYTES: usize = 16 * 1024;

pub(crate) const AGENT: Resource = Resource {
    kind: "TopologyAgent",
    plural: "topologyagents",
    short: "tagent",
    namespaced: false,
    noun: "report",
    about: "Reports what the agent on the Node of the same name does: the policies and drains in use, and the Services that fell back to something else. Each agent writes its own object when something changes: at most twice a minute, less often in a large cluster, and every 10 minutes if only numbers changed.",
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
    column("Phase", ".status.phase", "The state of the agent."),
    column("Version", ".status.version", "The version of the agent."),
    count(
        "Services",
        ".status.counts.services",
        "Services that the agent serves.",
    ),
    count(
        "Fallbacks",
        ".status.counts.fallbacks",
        "Services that fell back to something else.",
    ),
    column(
        "Warning",
        ".status.warnings[0].code",
        "The first problem of the Node itself.",
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
            "Virtual servers, routes and tables that could not be programmed. The agent tries again.",
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
                about: "the first list of some resource is not complete",
            },
            Word {
                name: "Serving",
                about: "everything is programmed",
            },
            Word {
                name: "Degraded",
                about: "the kernel refuses something, or data from the API server may be stale",
            },
        ]),
        "The state of the agent.",
    ),
    optional(
        "policies",
        list(&POLICY, MAX_REPORTED),
        "The policies that decide for a Service on the Node, with their generation. If they do not all fit, the namespaces share the room.",
    ),
    optional(
        "drains",
        list(&DRAINED, MAX_REPORTED),
        "The drains that the agent applies, with their generation; as many as fit.",
    ),
    optional(
        "fallbacks",
        list(&FALLBACK, MAX_FALLBACKS),
        "Services that fell back to something else, the latest first. If they do not all fit, the namespaces share the room.",
    ),
    optional(
        "warnings",
        list(&WARNING, MAX_WARNINGS),
        "Problems of the Node itself, as many as fit: for example a kube-proxy on the same Node, or a kernel that refuses requests.",
    ),
    optional("counts", Shape::Object(&COUNTS), "Totals for the Node."),
];

const fn list(of: &'static Shape, most: usize) -> Shape {
    Shape::List {
        of,
        least: 0,
        most,
        set: false,
    }
}

/// The name and the generation of an object.
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
            "The number of Services that it decides for on the Node.",
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
                "The number of endpoints that take no new connections because of it.",
            ),
            optional(
                "servicesSkipped",
                COUNT,
                "The number of Services that it skips.",
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
            "The policy that requested the mode, such as ClusterTopologyPolicy/near or TopologyPolicy/shop/near; absent = annotations of the Service.",
        ),
        required(
            "reason",
            Shape::Word(REASONS),
            "The reason; the most serious one, if there are several.",
        ),
        optional(
            "from",
            Shape::Text(PROSE),
            "The requested mode; absent if the annotations are not valid.",
        ),
        required(
            "to",
            Shape::Text(PROSE),
            "What applies now: a mode, Uniform or Nothing.",
        ),
        required("since", Shape::Time, "When this began."),
    ]],
    rules: &[],
    atomic: false,
});

const WARNING: Shape = Shape::Object(&Object {
    parts: &[&[
        required(
            "code",
            Shape::Text(PROSE),
            "The code, such as OtherProxy; docs/messages.md explains every code.",
        ),
        required(
            "message",
            Shape::Text(PROSE),
            "The problem, its effect, and what to do.",
        ),
    ]],
    rules: &[],
    atomic: false,
});

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
        counted("services", "Services that the agent serves."),
        counted("virtualServers", "Virtual servers in the kernel."),
        counted("realServers", "Real servers in the kernel."),
        counted(
            "failed",
            "Virtual servers, routes and tables that could not be programmed. The agent tries again.",
        ),
        counted(
            "policies",
            "Policies that decide for a Service, listed above or not.",
        ),
        counted(
            "fallbacks",
            "Services that fell back to something else, listed above or not.",
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
