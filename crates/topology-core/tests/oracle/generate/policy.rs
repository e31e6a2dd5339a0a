//! Generates policies: annotations, `topologyKeys` and policy objects.

use super::*;

fn key() -> impl Strategy<Value = LevelKey> {
    select(vec![
        LevelKey::Node,
        LevelKey::Label(ZONE.into()),
        LevelKey::Label(ZONE.into()),
        LevelKey::Label(REGION.into()),
        LevelKey::Label(RACK.into()),
    ])
}

fn levels() -> impl Strategy<Value = Vec<Level>> {
    let keys = vec![
        LevelKey::Node,
        LevelKey::Label(RACK.into()),
        LevelKey::Label(ZONE.into()),
        LevelKey::Label(REGION.into()),
    ];
    let keys = prop_oneof![3 => subsequence(keys.clone(), 0..=4), 1 => subsequence(keys, 1..=4).prop_shuffle()];
    let weight = prop_oneof![1 => Just(0_u32), 4 => 1..100_u32, 1 => Just(10_000)];
    let least = rarely(
        MinReady::default(),
        (1..4_u32, 0..=100_u8).prop_map(|(count, percent)| MinReady { count, percent }),
    );
    let details = proptest::collection::vec((weight, least), 5);
    (keys, proptest::bool::weighted(0.75), details).prop_map(|(mut keys, open, details)| {
        if open || keys.is_empty() {
            keys.push(LevelKey::Any);
        }
        let level = |(key, (weight, min_ready))| Level {
            key,
            weight,
            min_ready,
        };
        keys.into_iter().zip(details).map(level).collect()
    })
}

/// A scheduler other than the node's own; those with their own weight rules more often.
fn scheduler() -> impl Strategy<Value = Option<Scheduler>> {
    prop_oneof![
        2 => Just(None),
        1 => select(&Scheduler::ALL[..]).prop_map(Some),
        1 => select(&[Scheduler::Mh, Scheduler::Sh][..]).prop_map(Some),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![3 => Just(Mode::Prefer), 4 => Just(Mode::Weighted), 2 => Just(Mode::Balanced), 1 => Just(Mode::None)]
}

/// A policy in annotations.
pub(super) fn annotated() -> impl Strategy<Value = Policy> {
    let avoid = (key(), any::<bool>()).prop_map(|(key, soft)| vec![Avoid { key, soft }]);
    let choices = (
        rarely(EmptyTier::Cascade, Just(EmptyTier::Renormalize)),
        rarely(Weighting::TierShare, Just(Weighting::EndpointBias)),
        rarely(None, (100..300_u32).prop_map(Some)),
        rarely(None, select(&[0_u32, 20, 50, 100, 33][..]).prop_map(Some)),
        rarely(Vec::new(), avoid),
        rarely(OnNoMatch::Reject, Just(OnNoMatch::Drop)),
        rarely(0, select(&[10_u32, 90, 7][..])),
    );
    (levels(), mode(), choices, scheduler()).prop_map(
        |(mut levels, mut mode, choices, scheduler)| {
            let open = levels
                .last()
                .is_some_and(|level| level.key == LevelKey::Any);
            if !open && mode != Mode::Weighted {
                mode = Mode::Hard;
            }
            if mode == Mode::None {
                levels.clear();
            }
            if mode != Mode::Weighted {
                for (at, level) in levels.iter_mut().enumerate() {
                    level.weight = if at == 0 { 100 } else { 0 };
                }
            }
            let mut policy = Policy::new(PolicySource::Annotation, mode, levels);
            policy.scheduler = scheduler;
            if mode == Mode::None {
                return policy;
            }
            let (
                empty_tier,
                weighting,
                overprovision,
                max_overload,
                avoid,
                on_no_match,
                slow_start,
            ) = choices;
            (policy.empty_tier, policy.overprovision) = (empty_tier, overprovision);
            if mode == Mode::Weighted {
                policy.weighting = weighting;
            }
            policy.max_overload = max_overload.or(policy.max_overload);
            (policy.avoid, policy.slow_start) = (avoid, slow_start);
            if mode == Mode::Hard {
                policy.on_no_match = on_no_match;
            }
            policy
        },
    )
}

/// Annotations without levels, which are added to the policy that decides.
pub(super) fn added() -> impl Strategy<Value = Policy> {
    let avoid = proptest::collection::vec((key(), any::<bool>()), 1..3);
    (avoid, scheduler()).prop_map(|(avoid, scheduler)| {
        let mut policy = Policy::new(PolicySource::Annotation, Mode::None, Vec::new());
        (policy.adds, policy.scheduler) = (true, scheduler);
        for (key, soft) in avoid {
            if !policy.avoid.iter().any(|known: &Avoid| known.key == key) {
                policy.avoid.push(Avoid { key, soft });
            }
        }
        policy
    })
}

/// A policy object.
fn administered() -> impl Strategy<Value = Policy> {
    let zones = proptest::collection::vec(0..60_u32, 3).prop_map(|percents| {
        let zones = ["a", "b", "c"].into_iter().map(Arc::from);
        Demand::Static(zones.zip(percents).collect())
    });
    let choices = (
        prop_oneof![2 => Just(Demand::NodeCount), 1 => Just(Demand::AllocatableCpu), 1 => zones],
        rarely(Residual::Capacity, Just(Residual::Even)),
        rarely(0, 1..6_u32),
        rarely(0, 1..=100_u8),
        rarely(None, prop_oneof![2..20_u32, Just(256)].prop_map(Some)),
        proptest::collection::vec((key(), any::<bool>()), 0..2),
        rarely(0, 1..100_u32),
    );
    (annotated(), choices).prop_map(|(mut policy, choices)| {
        // A policy object cannot name another one.
        (policy.source, policy.scheduler) = (PolicySource::ClusterDefault, None);
        if policy.mode == Mode::None {
            return policy;
        }
        (
            policy.demand,
            policy.residual,
            policy.min_endpoints,
            policy.panic_percent,
            policy.subset_max_weight,
            _,
            policy.recovery_hold,
        ) = choices.clone();
        policy
            .avoid
            .extend(choices.5.into_iter().map(|(key, soft)| Avoid { key, soft }));
        policy
    })
}

pub(super) fn topology_keys() -> impl Strategy<Value = Policy> {
    levels().prop_map(|mut levels| {
        for (at, level) in levels.iter_mut().enumerate() {
            (level.weight, level.min_ready) = (if at == 0 { 100 } else { 0 }, MinReady::default());
        }
        let open = levels
            .last()
            .is_some_and(|level| level.key == LevelKey::Any);
        let mode = if open { Mode::Prefer } else { Mode::Hard };
        Policy::new(PolicySource::TopologyKeys, mode, levels)
    })
}

fn selector(key: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = Selector> {
    let equal = select(values).prop_map(move |value| Selector {
        labels: vec![(key.into(), value.into())],
        expressions: Vec::new(),
    });
    let operator = select(
        &[
            Operator::In,
            Operator::NotIn,
            Operator::Exists,
            Operator::DoesNotExist,
        ][..],
    );
    let expression = (operator, select(values)).prop_map(move |(operator, value)| {
        let values = match operator {
            Operator::In | Operator::NotIn => vec![value.into()],
            Operator::Exists | Operator::DoesNotExist => Vec::new(),
        };
        let expression = Expression {
            key: key.into(),
            operator,
            values,
        };
        Selector {
            labels: Vec::new(),
            expressions: vec![expression],
        }
    });
    prop_oneof![4 => Just(Selector::default()), 1 => equal, 1 => expression]
}

fn modes() -> impl Strategy<Value = Vec<Mode>> {
    subsequence(
        vec![
            Mode::Hard,
            Mode::Prefer,
            Mode::Weighted,
            Mode::Balanced,
            Mode::None,
        ],
        0..=5,
    )
}

/// The source of a policy, with its name and rank.
fn identity() -> impl Strategy<Value = TopologyPolicy> {
    let namespace = prop_oneof![Just(None), Just(Some(Arc::from("t")))];
    let rank = (proptest::option::of(0..3_i64), 0..2_i32);
    let enforcement = rarely(Enforcement::Default, Just(Enforcement::Override));
    (
        namespace,
        select(&["p0", "p1", "p2"][..]),
        rank,
        enforcement,
        administered(),
    )
        .prop_map(
            |(namespace, name, (created, priority), enforcement, mut policy)| {
                let enforcement = if namespace.is_some() {
                    Enforcement::Default
                } else {
                    enforcement
                };
                policy.source = match (&namespace, enforcement) {
                    (Some(_), _) => PolicySource::NamespacePolicy,
                    (None, Enforcement::Override) => PolicySource::ClusterOverride,
                    (None, Enforcement::Default) => PolicySource::ClusterDefault,
                };
                TopologyPolicy {
                    namespace,
                    name: name.into(),
                    created,
                    generation: 1,
                    priority,
                    enforcement,
                    namespace_selector: Selector::default(),
                    service_selector: Selector::default(),
                    node_selector: Selector::default(),
                    port_names: Vec::new(),
                    policy,
                    owner_limits: None,
                }
            },
        )
}

pub(crate) fn policy_object() -> impl Strategy<Value = TopologyPolicy> {
    let limits = (modes(), proptest::option::of(0..100_u32)).prop_map(
        |(allowed_modes, min_max_overload)| {
            Some(OwnerLimits {
                allowed_modes,
                min_max_overload,
            })
        },
    );
    let selectors = (
        selector("team", &["x", "y"]),
        selector("app", &["v", "w"]),
        selector(ZONE, &["a", "b"]),
    );
    let ports = select(&["http", "admin"][..]).prop_map(|name| vec![Arc::from(name)]);
    (
        identity(),
        selectors,
        rarely(Vec::new(), ports),
        rarely(None, limits),
    )
        .prop_map(
            |(mut object, (namespaces, services, nodes), port_names, limits)| {
                (object.service_selector, object.node_selector) = (services, nodes);
                object.port_names = port_names;
                if object.namespace.is_none() {
                    (object.namespace_selector, object.owner_limits) = (namespaces, limits);
                }
                object
            },
        )
}
