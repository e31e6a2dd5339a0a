//! Describes `ClusterTopologyPolicy` and the namespaced `TopologyPolicy`.

mod level;
mod rules;

use super::property::{LABEL_KEY, Need, Object, Property, Resource, SHORT_NAME, Shape, Word};
use super::selector::SELECTOR;
use super::status::{CLUSTER_POLICY_COLUMNS, POLICY_COLUMNS, POLICY_STATUS};
pub(super) use level::ALIASES;
use level::LEVEL;

pub const CLUSTER_POLICY: Resource = Resource {
    kind: "ClusterTopologyPolicy",
    plural: "clustertopologypolicies",
    short: "ctp",
    namespaced: false,
    noun: "policy",
    about: "Sets topology preferences for Services of the whole cluster, and what happens when the preferred endpoints are missing. One policy decides for a Service port; policies are never mixed.",
    spec: Object {
        parts: &[HEAD, NAMESPACES, BODY],
        rules: &[rules::BOTH],
        atomic: false,
    },
    status: POLICY_STATUS,
    status_by: "the controller",
    columns: CLUSTER_POLICY_COLUMNS,
};

pub const NAMESPACE_POLICY: Resource = Resource {
    kind: "TopologyPolicy",
    plural: "topologypolicies",
    short: "tp",
    namespaced: true,
    noun: "policy",
    about: "Sets topology preferences for Services of its namespace, and what happens when the preferred endpoints are missing. Annotations of a Service take precedence; the annotation topology.ipvs-topo.io/policy names one.",
    spec: Object {
        parts: &[HEAD, BODY],
        rules: &[rules::NAMESPACED, rules::BOTH],
        atomic: false,
    },
    status: POLICY_STATUS,
    status_by: "the controller",
    columns: POLICY_COLUMNS,
};

const PERCENT: Shape = Shape::Number {
    least: 0,
    most: 100,
};
const OVERLOAD: Shape = Shape::Number {
    least: 0,
    most: 10_000,
};

/// The first properties of both kinds.
const HEAD: &[Property] = &[
    Property {
        name: "priority",
        shape: Shape::Number {
            least: -1_000_000,
            most: 1_000_000,
        },
        need: Need::Number(0),
        about: "If several policies match a Service port, the highest priority wins, then the older policy, then the first by name.",
    },
    Property {
        name: "enforcement",
        shape: Shape::Word(&[
            Word {
                name: "Default",
                about: "applies to Services without topology annotations",
            },
            Word {
                name: "Override",
                about: "takes precedence over annotations; only in a ClusterTopologyPolicy",
            },
        ]),
        need: Need::Text("Default"),
        about: "Whether the policy takes precedence over annotations of Services.",
    },
];

/// The properties of a `ClusterTopologyPolicy` only.
const NAMESPACES: &[Property] = &[Property {
    name: "namespaceSelector",
    shape: Shape::Object(&SELECTOR),
    need: Need::EmptyMap,
    about: "Selects namespaces by their labels. The policy applies to their Services. Empty = all.",
}];

/// The other properties of both kinds.
const BODY: &[Property] = &[
    Property {
        name: "serviceSelector",
        shape: Shape::Object(&SELECTOR),
        need: Need::EmptyMap,
        about: "Selects Services by their labels; empty = all.",
    },
    Property {
        name: "portNames",
        shape: Shape::List {
            of: &Shape::Text(SHORT_NAME),
            least: 0,
            most: 100,
            set: true,
        },
        need: Need::EmptyList,
        about: "Selects ports of these Services by name; empty = all.",
    },
    Property {
        name: "nodeSelector",
        shape: Shape::Object(&SELECTOR),
        need: Need::EmptyMap,
        about: "Selects the nodes of clients, not of endpoints, by their labels; empty = all.",
    },
    Property {
        name: "mode",
        shape: Shape::Word(MODES),
        need: Need::Required,
        about: "How the policy chooses endpoints.",
    },
    Property {
        name: "levels",
        shape: Shape::List {
            of: &Shape::Object(&LEVEL),
            least: 0,
            most: topology_core::policy::MAX_LEVELS,
            set: false,
        },
        need: Need::EmptyList,
        about: "The levels, nearest first. An endpoint belongs to the first level whose label it shares with the client's node.",
    },
    Property {
        name: "weighting",
        shape: Shape::Word(&[
            Word {
                name: "TierShare",
                about: "the share of the level, regardless of its number of endpoints",
            },
            Word {
                name: "EndpointBias",
                about: "the weight of each endpoint in it",
            },
        ]),
        need: Need::Text("TierShare"),
        about: "What the weights of the levels mean.",
    },
    Property {
        name: "emptyTier",
        shape: Shape::Word(&[
            Word {
                name: "Cascade",
                about: "to the next outer level with endpoints, else to the nearest inner one",
            },
            Word {
                name: "Renormalize",
                about: "to all levels with endpoints, in proportion",
            },
        ]),
        need: Need::Text("Cascade"),
        about: "Where the share of a level without endpoints goes.",
    },
    Property {
        name: "spill",
        shape: Shape::Object(&SPILL),
        need: Need::EmptyMap,
        about: "What happens when a level loses some of its endpoints.",
    },
    Property {
        name: "guard",
        shape: Shape::Object(&GUARD),
        need: Need::EmptyMap,
        about: "Protects endpoints from overload.",
    },
    Property {
        name: "avoid",
        shape: Shape::List {
            of: &Shape::Object(&AVOID),
            least: 0,
            most: 16,
            set: false,
        },
        need: Need::EmptyList,
        about: "Domains of the client's node whose endpoints are avoided.",
    },
    Property {
        name: "onNoMatch",
        shape: Shape::Word(&[
            Word {
                name: "Reject",
                about: "connections are refused at once",
            },
            Word {
                name: "Drop",
                about: "packets are dropped",
            },
        ]),
        need: Need::Text("Reject"),
        about: "What clients see if the levels, or a hard avoid, leave no endpoint.",
    },
    Property {
        name: "subset",
        shape: Shape::Object(&SUBSET),
        need: Need::Optional,
        about: "Limits the number of endpoints of the farthest level, with a different selection on each node, so that weights and the kernel's tables stay small; absent = no limit.",
    },
    Property {
        name: "ownerLimits",
        shape: Shape::Object(&OWNER_LIMITS),
        need: Need::Optional,
        about: "Limits the annotations of the selected Services; absent = no limits. Annotations with another mode are not used, and the next source decides. A smaller max-overload is raised to the minimum.",
    },
];

const MODES: &[Word] = &[
    Word {
        name: "Hard",
        about: "only endpoints of the levels, nearest first",
    },
    Word {
        name: "Prefer",
        about: "the nearest level with endpoints takes all traffic",
    },
    Word {
        name: "Weighted",
        about: "each level takes the share of its weight",
    },
    Word {
        name: "Balanced",
        about: "as near as possible without overloading endpoints",
    },
    Word {
        name: "None",
        about: "no preference, even where EndpointSlices carry hints",
    },
];

const SPILL: Object = Object {
    parts: &[&[
        Property {
            name: "overprovisionPercent",
            shape: Shape::Number {
                least: 100,
                most: 10_000,
            },
            need: Need::Optional,
            about: "A level keeps its full share while its ready endpoints times this percentage cover all of its endpoints. Below that, it passes the rest outward: with 140, below 71 percent ready. Absent = the level keeps its share until it is empty.",
        },
        Property {
            name: "recoveryHoldSeconds",
            shape: Shape::Number {
                least: 0,
                most: 86_400,
            },
            need: Need::Number(0),
            about: "Seconds that a level which lost endpoints waits before its share grows again. The share shrinks at once.",
        },
    ]],
    rules: &[],
    atomic: false,
};

const GUARD: Object = Object {
    parts: &[&[
        Property {
            name: "maxOverloadPercent",
            shape: OVERLOAD,
            need: Need::Optional,
            about: "How many percent more than their fair share the endpoints of a level may get. The rest goes outward. Absent = no cap; in mode Balanced, 0.",
        },
        Property {
            name: "demand",
            shape: Shape::Word(&[
                Word {
                    name: "NodeCount",
                    about: "from the number of its ready nodes",
                },
                Word {
                    name: "AllocatableCPU",
                    about: "from the allocatable CPU of its ready nodes",
                },
                Word {
                    name: "Static",
                    about: "from staticDemand",
                },
            ]),
            need: Need::Text("NodeCount"),
            about: "How the cap estimates the demand of a domain.",
        },
        Property {
            name: "staticDemand",
            shape: Shape::Map {
                of: &PERCENT,
                most: 256,
                keys: "zone",
            },
            need: Need::EmptyMap,
            about: "The demand of each zone in percent, for Static.",
        },
        Property {
            name: "residual",
            shape: Shape::Word(&[
                Word {
                    name: "Capacity",
                    about: "to zones whose share of endpoints is larger than their share of demand",
                },
                Word {
                    name: "Even",
                    about: "to all endpoints equally",
                },
            ]),
            need: Need::Text("Capacity"),
            about: "Where the traffic above the cap goes.",
        },
        Property {
            name: "minEndpoints",
            shape: Shape::Number {
                least: 0,
                most: 100_000,
            },
            need: Need::Number(0),
            about: "With fewer usable endpoints, all get the same share, regardless of level. Not for policies that never leave their levels.",
        },
        Property {
            name: "panicPercent",
            shape: PERCENT,
            need: Need::Number(0),
            about: "If a smaller percentage of the endpoints is ready, all get the same share, regardless of level. Not for policies that never leave their levels.",
        },
    ]],
    rules: &[rules::GUARD],
    atomic: false,
};

const AVOID: Object = Object {
    parts: &[&[
        Property {
            name: "key",
            shape: Shape::Text(LABEL_KEY),
            need: Need::Required,
            about: "The label. Endpoints on nodes with the same value as the client's node are avoided. Short names as in levels.",
        },
        Property {
            name: "mode",
            shape: Shape::Word(&[
                Word {
                    name: "Hard",
                    about: "never",
                },
                Word {
                    name: "Soft",
                    about: "only if no other endpoint remains",
                },
            ]),
            need: Need::Text("Hard"),
            about: "Whether these endpoints may be used at all.",
        },
    ]],
    rules: &[],
    atomic: false,
};

const SUBSET: Object = Object {
    parts: &[&[Property {
        name: "maxWeight",
        shape: Shape::Number {
            least: 1,
            most: 65_535,
        },
        need: Need::Number(256),
        about: "The largest weight. If weights would be larger, the farthest level gets fewer endpoints.",
    }]],
    rules: &[],
    atomic: false,
};

const OWNER_LIMITS: Object = Object {
    parts: &[&[
        Property {
            name: "allowedModes",
            shape: Shape::List {
                of: &Shape::Word(MODES),
                least: 0,
                most: 5,
                set: true,
            },
            need: Need::EmptyList,
            about: "The modes that annotations may set; empty = all.",
        },
        Property {
            name: "minMaxOverloadPercent",
            shape: OVERLOAD,
            need: Need::Optional,
            about: "The smallest max-overload that annotations may set; absent = any.",
        },
    ]],
    rules: &[],
    atomic: false,
};
