//! Prints records as the Kubernetes YAML that `kubectl get -o yaml` prints: block style, keys sorted.

use std::io::{self, Write};

use crate::shape::{
    Detail, ENDPOINT_PORT, ENDPOINTS_PER_SLICE, EndpointRecord, NAMESPACE, NodeRecord,
    SERVICE_PORT, ServiceRecord, Shape,
};

/// The rack label of a node.
const RACK: &str = "rack";
/// The creation time of every generated object.
const CREATED: &str = "2026-01-05T08:00:00Z";

/// Writes the whole cluster as one multi-document YAML text.
pub fn write_cluster(shape: &Shape, out: &mut impl Write) -> io::Result<()> {
    for index in 0..shape.nodes {
        write_node(shape, &shape.node(index), out)?;
    }
    for index in 0..shape.services {
        write_service(shape, &shape.service(index), out)?;
    }
    Ok(())
}

/// Writes one node as a YAML document.
pub fn write_node(shape: &Shape, node: &NodeRecord, out: &mut impl Write) -> io::Result<()> {
    let NodeRecord {
        name,
        zone,
        rack,
        address,
    } = node;
    write!(
        out,
        "---\napiVersion: v1\nkind: Node\nmetadata:\n  creationTimestamp: \"{CREATED}\"\n  labels:\n    \
         kubernetes.io/hostname: {name}\n    topology.kubernetes.io/region: region-1\n    \
         topology.kubernetes.io/zone: {zone}\n"
    )?;
    if let Some(rack) = rack {
        writeln!(out, "    {RACK}: {rack}")?;
    }
    writeln!(out, "  name: {name}")?;
    write_identity(shape, name, out)?;
    write!(
        out,
        "status:\n  addresses:\n  - address: {address}\n    type: InternalIP\n  - address: {name}\n    type: Hostname\n"
    )
}

/// Writes one Service and its EndpointSlices as YAML documents.
pub fn write_service(
    shape: &Shape,
    service: &ServiceRecord,
    out: &mut impl Write,
) -> io::Result<()> {
    let ServiceRecord {
        name,
        cluster_ip,
        node_port,
        load_balancer_ip,
        endpoints,
    } = service;
    out.write_all(b"---\napiVersion: v1\nkind: Service\nmetadata:\n")?;
    if let Some(weights) = &shape.weights {
        write!(
            out,
            "  annotations:\n    topology.ipvs-topo.io/weights: {weights}\n"
        )?;
    }
    write!(
        out,
        "  creationTimestamp: \"{CREATED}\"\n  labels:\n    app: {name}\n  name: {name}\n  namespace: {NAMESPACE}\n"
    )?;
    write_identity(shape, name, out)?;
    write!(
        out,
        "spec:\n  clusterIP: {cluster_ip}\n  clusterIPs:\n  - {cluster_ip}\n  internalTrafficPolicy: Cluster\n  \
         ipFamilies:\n  - IPv4\n  ipFamilyPolicy: SingleStack\n  ports:\n  - name: http\n"
    )?;
    if let Some(port) = node_port {
        writeln!(out, "    nodePort: {port}")?;
    }
    write!(
        out,
        "    port: {SERVICE_PORT}\n    protocol: TCP\n    targetPort: {ENDPOINT_PORT}\n  selector:\n    app: {name}\n  \
         sessionAffinity: None\n  type: {}\n",
        shape.service_type
    )?;
    if let Some(address) = load_balancer_ip {
        write!(
            out,
            "status:\n  loadBalancer:\n    ingress:\n    - ip: {address}\n      ipMode: VIP\n"
        )?;
    }
    for (nth, endpoints) in endpoints.chunks(ENDPOINTS_PER_SLICE).enumerate() {
        write_slice(shape, name, nth, endpoints, out)?;
    }
    Ok(())
}

fn write_slice(
    shape: &Shape,
    service: &str,
    nth: usize,
    endpoints: &[EndpointRecord],
    out: &mut impl Write,
) -> io::Result<()> {
    out.write_all(b"---\naddressType: IPv4\napiVersion: discovery.k8s.io/v1\nendpoints:\n")?;
    for endpoint in endpoints {
        write_endpoint(shape, service, endpoint, out)?;
    }
    write!(
        out,
        "kind: EndpointSlice\nmetadata:\n  creationTimestamp: \"{CREATED}\"\n  labels:\n    \
         endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io\n    \
         kubernetes.io/service-name: {service}\n  name: {service}-{nth:05}\n  namespace: {NAMESPACE}\n"
    )?;
    write_identity(shape, service, out)?;
    write!(
        out,
        "ports:\n- name: http\n  port: {ENDPOINT_PORT}\n  protocol: TCP\n"
    )
}

fn write_endpoint(
    shape: &Shape,
    service: &str,
    endpoint: &EndpointRecord,
    out: &mut impl Write,
) -> io::Result<()> {
    let EndpointRecord {
        address,
        node,
        zone,
    } = endpoint;
    write!(
        out,
        "- addresses:\n  - {address}\n  conditions:\n    ready: true\n    serving: true\n    terminating: false\n  \
         nodeName: {node}\n"
    )?;
    if shape.detail == Detail::Full {
        let number = address.to_bits();
        write!(
            out,
            "  targetRef:\n    kind: Pod\n    name: {service}-{number:x}\n    namespace: {NAMESPACE}\n    \
             uid: 7c1d3c52-0000-4000-8000-{number:012x}\n"
        )?;
    }
    writeln!(out, "  zone: {zone}")
}

/// Writes the metadata that the API server adds to every object; the caller is inside `metadata:`.
fn write_identity(shape: &Shape, name: &str, out: &mut impl Write) -> io::Result<()> {
    match shape.detail {
        Detail::Lean => Ok(()),
        Detail::Full => {
            let number = name.bytes().fold(0_u32, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(byte.into())
            });
            write!(
                out,
                "  resourceVersion: \"{number}\"\n  uid: 1f0a6f2e-0000-4000-8000-{number:012x}\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use guest_wire::ServiceType;

    use super::*;

    fn text(shape: &Shape) -> String {
        let mut out = Vec::new();
        write_cluster(shape, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_same_shape_prints_the_same_text() {
        let shape = Shape {
            services: 20,
            ..Shape::default()
        };
        assert_eq!(text(&shape), text(&shape.clone()));
    }

    #[test]
    fn every_object_of_the_shape_is_printed_once() {
        let shape = Shape {
            services: 3,
            endpoints: 250,
            nodes: 7,
            racks: 3,
            weights: Some("zone=80,*=20".into()),
            ..Shape::default()
        };
        let text = text(&shape);
        let count = |line: &str| text.lines().filter(|found| *found == line).count();
        assert_eq!(count("kind: Node"), 7);
        assert_eq!(count("    rack: rack-1"), 3);
        assert_eq!(count("    rack: rack-3"), 2);
        assert_eq!(count("kind: Service"), 3);
        assert_eq!(
            count("kind: EndpointSlice"),
            9,
            "250 endpoints need three slices"
        );
        assert_eq!(count("- addresses:"), 750);
        assert_eq!(count("    topology.ipvs-topo.io/weights: zone=80,*=20"), 3);
    }

    #[test]
    fn each_service_has_the_frontends_of_its_type() {
        let frontends = |service_type| {
            let shape = Shape {
                services: 2,
                service_type,
                ..Shape::default()
            };
            let text = text(&shape);
            let count = |word: &str| text.matches(word).count();
            assert_eq!(count(&format!("  type: {service_type}\n")), 2);
            (count("    nodePort: 2000"), count("    - ip: 198.18.0."))
        };
        assert_eq!(frontends(ServiceType::ClusterIp), (0, 0));
        assert_eq!(frontends(ServiceType::NodePort), (2, 0));
        assert_eq!(frontends(ServiceType::LoadBalancer), (2, 2));
    }

    #[test]
    fn full_detail_adds_what_the_api_server_adds() {
        let shape = Shape {
            services: 1,
            nodes: 1,
            detail: Detail::Full,
            ..Shape::default()
        };
        let text = text(&shape);
        assert_eq!(text.matches("  resourceVersion: ").count(), 3);
        assert_eq!(text.matches("  targetRef:").count(), 10);
    }
}
