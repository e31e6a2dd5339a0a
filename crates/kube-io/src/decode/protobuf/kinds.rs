//! The numbers of the protobuf fields that the conversion reads, from `generated.proto` in
//! `k8s.io/api` and `k8s.io/apimachinery`. A number never changes its meaning there.
//!
//! Files may also have `spec.topologyKeys` of a Service and `topology` of an endpoint. No supported
//! server has these fields.

use crate::decode::error::{DecodeError, decode_error};

/// The fields of a message that are read.
pub(in crate::decode) type Message = &'static [Field];

#[derive(Debug, Clone, Copy)]
pub(in crate::decode) struct Field {
    pub(in crate::decode) number: u32,
    /// The name in JSON.
    pub(in crate::decode) name: &'static str,
    pub(in crate::decode) cardinality: Cardinality,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::decode) enum Cardinality {
    One(Type),
    Many(Type),
    /// A map with string keys.
    Map(Type),
}

#[derive(Debug, Clone, Copy)]
pub(in crate::decode) enum Type {
    Text,
    Number,
    Flag,
    Time,
    Quantity,
    Message(Message),
}

/// The fields of an object of this kind.
pub(in crate::decode) fn of(kind: &str) -> Result<Message, DecodeError> {
    match kind {
        "Service" => Ok(SERVICE),
        "EndpointSlice" => Ok(ENDPOINT_SLICE),
        "Node" => Ok(NODE),
        "ServiceCIDR" => Ok(SERVICE_CIDR),
        "Namespace" | "PartialObjectMetadata" => Ok(ONLY_METADATA),
        "Status" => Ok(STATUS),
        other => Err(decode_error(format!("unexpected kind `{other}`"))),
    }
}

const fn one(number: u32, name: &'static str, of: Type) -> Field {
    let cardinality = Cardinality::One(of);
    Field {
        number,
        name,
        cardinality,
    }
}

const fn many(number: u32, name: &'static str, of: Type) -> Field {
    Field {
        cardinality: Cardinality::Many(of),
        ..one(number, name, of)
    }
}

const fn map(number: u32, name: &'static str, of: Type) -> Field {
    Field {
        cardinality: Cardinality::Map(of),
        ..one(number, name, of)
    }
}

const fn text(number: u32, name: &'static str) -> Field {
    one(number, name, Type::Text)
}

const fn number(number: u32, name: &'static str) -> Field {
    one(number, name, Type::Number)
}

const fn flag(number: u32, name: &'static str) -> Field {
    one(number, name, Type::Flag)
}

const fn message(number: u32, name: &'static str, message: Message) -> Field {
    one(number, name, Type::Message(message))
}

const ONLY_METADATA: Message = &[METADATA];

const METADATA: Field = message(
    1,
    "metadata",
    &[
        text(1, "name"),
        text(3, "namespace"),
        text(6, "resourceVersion"),
        one(8, "creationTimestamp", Type::Time),
        one(9, "deletionTimestamp", Type::Time),
        map(11, "labels", Type::Text),
        map(12, "annotations", Type::Text),
    ],
);

const NAME: Message = &[text(1, "name")];

const SERVICE: Message = &[
    METADATA,
    message(
        2,
        "spec",
        &[
            many(1, "ports", Type::Message(SERVICE_PORT)),
            text(3, "clusterIP"),
            text(4, "type"),
            many(5, "externalIPs", Type::Text),
            text(7, "sessionAffinity"),
            many(9, "loadBalancerSourceRanges", Type::Text),
            text(10, "externalName"),
            text(11, "externalTrafficPolicy"),
            number(12, "healthCheckNodePort"),
            flag(13, "publishNotReadyAddresses"),
            message(
                14,
                "sessionAffinityConfig",
                &[message(1, "clientIP", &[number(1, "timeoutSeconds")])],
            ),
            many(18, "clusterIPs", Type::Text),
            text(22, "internalTrafficPolicy"),
            text(23, "trafficDistribution"),
        ],
    ),
    message(
        3,
        "status",
        &[message(
            1,
            "loadBalancer",
            &[many(1, "ingress", Type::Message(INGRESS))],
        )],
    ),
];

const SERVICE_PORT: Message = &[
    text(1, "name"),
    text(2, "protocol"),
    number(3, "port"),
    number(5, "nodePort"),
];

const INGRESS: Message = &[text(1, "ip"), text(3, "ipMode")];

const ENDPOINT_SLICE: Message = &[
    METADATA,
    many(2, "endpoints", Type::Message(ENDPOINT)),
    many(3, "ports", Type::Message(ENDPOINT_PORT)),
    text(4, "addressType"),
];

const ENDPOINT: Message = &[
    many(1, "addresses", Type::Text),
    message(
        2,
        "conditions",
        &[flag(1, "ready"), flag(2, "serving"), flag(3, "terminating")],
    ),
    text(3, "hostname"),
    map(5, "deprecatedTopology", Type::Text),
    text(6, "nodeName"),
    text(7, "zone"),
    message(
        8,
        "hints",
        &[
            many(1, "forZones", Type::Message(NAME)),
            many(2, "forNodes", Type::Message(NAME)),
        ],
    ),
];

const ENDPOINT_PORT: Message = &[text(1, "name"), text(2, "protocol"), number(3, "port")];

const NODE: Message = &[
    METADATA,
    message(
        2,
        "spec",
        &[
            many(5, "taints", Type::Message(&[text(1, "key")])),
            many(7, "podCIDRs", Type::Text),
        ],
    ),
    message(
        3,
        "status",
        &[
            map(2, "allocatable", Type::Quantity),
            many(4, "conditions", Type::Message(CONDITION)),
            many(5, "addresses", Type::Message(ADDRESS)),
        ],
    ),
];

const CONDITION: Message = &[text(1, "type"), text(2, "status")];

const ADDRESS: Message = &[text(1, "type"), text(2, "address")];

const SERVICE_CIDR: Message = &[
    METADATA,
    message(2, "spec", &[many(1, "cidrs", Type::Text)]),
];

const STATUS: Message = &[
    text(3, "message"),
    text(4, "reason"),
    message(5, "details", &[number(5, "retryAfterSeconds")]),
    number(6, "code"),
];
