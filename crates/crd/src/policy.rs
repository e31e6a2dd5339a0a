//! `ClusterTopologyPolicy` and its namespaced twin `TopologyPolicy`.

mod level;
mod rules;

use super::property::{LABEL_KEY, Need, Object, Property, Resource, SHORT_NAME, Shape, Word};
use super::selector::SELECTOR;
use super::status::{CLUSTER_POLICY_COLUMNS, POLICY_COLUMNS, POLICY_STATUS};
pub(super) use level::ALIASES;
use level::LEVEL;

/// The kind `ClusterTopologyPolicy`.
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

/// The kind `TopologyPolicy`.
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

/// Whom it is for.
const HEAD: &[Property] = &[
    Property {
        name: "priority",
        shape: Shape::Number {
            least: -1_000_000,
            most: 1_000_000,
        },
        need: Need::Number(0),
        about: "Of several policies for a Service port the one with the higher priority wins, then the older one, then the first by name.",
    },
    Property {
        name: "enforcement",
        shape: Shape::Word(&[
            Word {
                name: "Default",
                about: "for Services whose annotations say nothing",
            },
            Word {
                name: "Override",
                about: "beats annotations; only in a ClusterTopologyPolicy",
            },
        ]),
        need: Need::Text("Default"),
        about: "Whether it beats the annotations of Services.",
    },
];

/// What only a policy of the cluster may say.
const NAMESPACES: &[Property] = &[Property {
    name: "namespaceSelector",
    shape: Shape::Object(&SELECTOR),
    need: Need::EmptyMap,
    about: "The namespaces whose Services it is for, by their labels; empty = all.",
}];

/// The rest, which both may say.
const BODY: &[Property] = &[
    Property {
        name: "serviceSelector",
        shape: Shape::Object(&SELECTOR),
        need: Need::EmptyMap,
        about: "The Services it is for, by their labels; empty = all.",
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
        about: "The ports of these Services it is for, by name; empty = all.",
    },
    Property {
        name: "nodeSelector",
        shape: Shape::Object(&SELECTOR),
        need: Need::EmptyMap,
        about: "The nodes on which it decides, by their labels; empty = all. It is about where clients are, not endpoints.",
    },
    Property {
        name: "mode",
        shape: Shape::Word(MODES),
        need: Need::Required,
        about: "What it means as a whole.",
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
        about: "How near is near, nearest first. An endpoint belongs to the first level whose label it shares with the client's node.",
    },
    Property {
        name: "weighting",
        shape: Shape::Word(&[
            Word {
                name: "TierShare",
                about: "the share of the level, however many endpoints are in it",
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
                about: "to the next outer level that has some, else to the nearest inner one",
            },
            Word {
                name: "Renormalize",
                about: "to all levels that have some, in proportion",
            },
        ]),
        need: Need::Text("Cascade"),
        about: "Where the share of a level without endpoints goes.",
    },
    Property {
        name: "spill",
        shape: Shape::Object(&SPILL),
        need: Need::EmptyMap,
        about: "What a level does that has lost some of its endpoints.",
    },
    Property {
        name: "guard",
        shape: Shape::Object(&GUARD),
        need: Need::EmptyMap,
        about: "What keeps endpoints from too much.",
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
        about: "Domains of the client's node whose endpoints are not wanted.",
    },
    Property {
        name: "onNoMatch",
        shape: Shape::Word(&[
            Word {
                name: "Reject",
                about: "refused at once",
            },
            Word {
                name: "Drop",
                about: "silence",
            },
        ]),
        need: Need::Text("Reject"),
        about: "What clients see where the levels, or a hard avoid, leave no endpoint.",
    },
    Property {
        name: "subset",
        shape: Shape::Object(&SUBSET),
        need: Need::Optional,
        about: "Thins out the farthest level, each node keeping others, so that weights and the kernel's tables stay small; absent = never.",
    },
    Property {
        name: "ownerLimits",
        shape: Shape::Object(&OWNER_LIMITS),
        need: Need::Optional,
        about: "What annotations of the Services it is for may ask for; absent = anything. Annotations of another mode do not count and the next source decides; a max-overload below the least is raised to it.",
    },
];

const MODES: &[Word] = &[
    Word {
        name: "Hard",
        about: "these levels or a refusal, nearest first",
    },
    Word {
        name: "Prefer",
        about: "the nearest level that has endpoints takes all",
    },
    Word {
        name: "Weighted",
        about: "each level its weight",
    },
    Word {
        name: "Balanced",
        about: "as near as possible without overloading anybody",
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
            about: "A level keeps its share while its ready endpoints times this percentage cover all of its endpoints, and passes the rest outward: with 140 it begins to spill below 71 percent ready. Absent = it keeps its share until it is empty.",
        },
        Property {
            name: "recoveryHoldSeconds",
            shape: Shape::Number {
                least: 0,
                most: 86_400,
            },
            need: Need::Number(0),
            about: "Seconds that a level which lost endpoints waits before it grows again. It shrinks at once.",
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
            about: "How much more than its fair share the endpoints of a level may get; what is above goes outward. Absent = no cap, but 0 in mode Balanced.",
        },
        Property {
            name: "demand",
            shape: Shape::Word(&[
                Word {
                    name: "NodeCount",
                    about: "by its ready nodes",
                },
                Word {
                    name: "AllocatableCPU",
                    about: "by the allocatable CPU of its ready nodes",
                },
                Word {
                    name: "Static",
                    about: "as staticDemand says",
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
                    about: "to zones that have more of the endpoints than of the demand",
                },
                Word {
                    name: "Even",
                    about: "to all endpoints alike",
                },
            ]),
            need: Need::Text("Capacity"),
            about: "Where what the cap turns away goes.",
        },
        Property {
            name: "minEndpoints",
            shape: Shape::Number {
                least: 0,
                most: 100_000,
            },
            need: Need::Number(0),
            about: "With fewer usable endpoints all are alike, wherever they are. Not for policies that never leave their levels.",
        },
        Property {
            name: "panicPercent",
            shape: PERCENT,
            need: Need::Number(0),
            about: "With fewer percent of the endpoints ready all are alike, wherever they are. Not for policies that never leave their levels.",
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
            about: "The label: endpoints on nodes that have the same value of it as the client's node are not wanted. Short names as in levels.",
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
                    about: "only where nothing else remains",
                },
            ]),
            need: Need::Text("Hard"),
            about: "Whether they may be used at all.",
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
        about: "The largest weight before the farthest level is thinned out.",
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
            about: "The modes they may have; empty = all.",
        },
        Property {
            name: "minMaxOverloadPercent",
            shape: OVERLOAD,
            need: Need::Optional,
            about: "The least max-overload they may set; absent = any.",
        },
    ]],
    rules: &[],
    atomic: false,
};
