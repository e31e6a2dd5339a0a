//! Describes a decision: its source, what each stage did, and the weights.

use topology_core::model::PolicyName;
use topology_core::policy::PolicySource;
use topology_core::quantise::QuantiseMethod;
use topology_core::resolve::{Lost, ResolvedServer, StageRecord};
use topology_core::scheduler::Scheduler;

use super::scheduler;
use crate::numbers::many;
use crate::view::{DeciderView, ExplainView, LostView, StageView};
use crate::{describe, policy_text};

/// A resolved virtual server with its stages.
pub fn explain(resolved: &ResolvedServer) -> ExplainView {
    let decision = &resolved.decision;
    ExplainView {
        server: describe::server(resolved),
        decided_by: DeciderView {
            source: decision.source.as_str().to_owned(),
            policy: decision.policy.as_ref().map(PolicyName::to_string),
            words: source_words(decision.source, decision.policy.as_ref()),
        },
        lost: decision.lost.iter().map(lost).collect(),
        stages: decision
            .stages
            .iter()
            .map(|record| stage(record, resolved))
            .collect(),
        scheduler_note: if resolved.server.key.is_for_dns() {
            scheduler::note_of_dns(decision)
        } else {
            scheduler::note(resolved.server.scheduler, decision)
        },
        node: None,
        what_if: None,
        warnings: Vec::new(),
    }
}

fn lost(lost: &Lost) -> LostView {
    LostView {
        source: lost.source.as_str().to_owned(),
        policy: lost.policy.as_ref().map(PolicyName::to_string),
        words: source_words(lost.source, lost.policy.as_ref()),
        why: lost.why.to_string(),
        code: lost.why.code().to_owned(),
    }
}

fn source_words(source: PolicySource, policy: Option<&PolicyName>) -> String {
    let words = match source {
        PolicySource::InternalTrafficPolicyLocal => "internalTrafficPolicy: Local",
        PolicySource::ExternalTrafficPolicyLocal => "externalTrafficPolicy: Local",
        PolicySource::ClusterOverride => "a ClusterTopologyPolicy that overrides",
        PolicySource::Annotation => "the Service's annotations",
        PolicySource::TopologyKeys => "spec.topologyKeys of the Service",
        PolicySource::NamespacePolicy => "a TopologyPolicy of the namespace",
        PolicySource::ClusterDefault => "a ClusterTopologyPolicy",
        PolicySource::Hints => "hints in the EndpointSlices",
        PolicySource::Uniform => "nothing, so every ready endpoint is used",
    };
    policy.map_or_else(|| words.to_owned(), PolicyName::to_string)
}

fn stage(record: &StageRecord, resolved: &ResolvedServer) -> StageView {
    let mut lines: Vec<String> = record.facts.iter().map(ToString::to_string).collect();
    lines.extend(policy_text::out(&resolved.decision, record.number));
    match record.number {
        10 => lines.extend(quantised(resolved)),
        11 => lines.push(emitted(resolved)),
        _ => {}
    }
    StageView {
        stage: format!("S{}", record.number),
        name: record.name.to_owned(),
        endpoints_before: record.before,
        endpoints_after: record.after,
        lines,
    }
}

/// `exact; one cycle is 120 connections`; answers for DNS. Only `wrr` has a cycle.
fn quantised(resolved: &ResolvedServer) -> Option<String> {
    let (stage, cycle) = resolved.decision.quantised?;
    let how = match stage {
        QuantiseMethod::Exact | QuantiseMethod::WideExact => "exact",
        QuantiseMethod::Search | QuantiseMethod::WideSearch => "rounded within the tolerance",
        QuantiseMethod::Clamped => "clamped at the largest weight, outside the tolerance",
    };
    let counted = if resolved.server.key.is_for_dns() {
        "answer"
    } else {
        "connection"
    };
    Some(if resolved.server.scheduler == Scheduler::Wrr {
        format!("{how}; one cycle is {}", many(cycle, counted))
    } else {
        how.to_owned()
    })
}

fn emitted(resolved: &ResolvedServer) -> String {
    let server = &resolved.server;
    let count = server.real_servers.len() as u64;
    let emitted = if server.key.is_for_dns() {
        format!("answers with {}", many(count, "endpoint"))
    } else {
        format!("{} with {}", server.key, many(count, "real server"))
    };
    match &resolved.decision.refusal {
        Some(refusal) => format!("{emitted}: {refusal}"),
        None => emitted,
    }
}
