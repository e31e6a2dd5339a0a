//! Parses the changes on the command line.

use std::fmt;
use std::sync::Arc;

use topology_core::hints::HintMode;
use topology_core::model::ObjectName;
use topology_core::policy::{ANNOTATIONS, PREFIX};

/// `--set NS/SVC:annotation=value`, or `--set NS/SVC:trafficDistribution=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub service: ObjectName,
    pub part: Part,
    /// The new value; empty removes it.
    pub value: String,
}

/// A part of a Service that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// An annotation, with its prefix.
    Annotation(String),
    /// The field `spec.trafficDistribution`.
    TrafficDistribution,
}

/// `--drain KEY=VALUE[,VALUE...]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainOf {
    /// A label key or its alias.
    pub key: String,
    pub values: Vec<Arc<str>>,
}

/// `--scale NS/SVC=ZONE:N`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    pub service: ObjectName,
    pub zone: Arc<str>,
    /// The number of ready endpoints in the zone.
    pub count: usize,
}

/// The field's name on the command line.
const DISTRIBUTION: &str = "trafficDistribution";

/// The largest number of endpoints for one zone of a Service.
const MOST: usize = 10_000;
/// Costs beyond it have more digits than a table has room for.
const HIGHEST_PRICE: f64 = 1e9;

pub fn set(text: &str) -> Result<Set, String> {
    let wrong = || {
        format!(
            "{text:?} is not NS/SVC:annotation=value; write for example 'shop/cart:weights=zone=90,*=10', quoted for the shell"
        )
    };
    let (service, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (annotation, value) = rest.split_once('=').ok_or_else(wrong)?;
    if annotation.is_empty() {
        return Err(wrong());
    }
    let part = match annotation {
        DISTRIBUTION => Part::TrafficDistribution,
        name => Part::Annotation(known_annotation(name)?),
    };
    if part == Part::TrafficDistribution
        && !value.is_empty()
        && !HintMode::DISTRIBUTIONS.contains(&value)
    {
        return Err(format!(
            "{value:?} is not a {DISTRIBUTION}; use {}, or nothing to remove the field",
            HintMode::DISTRIBUTIONS.join(", ")
        ));
    }
    Ok(Set {
        service: ObjectName::parse(service).ok_or_else(wrong)?,
        part,
        value: value.to_owned(),
    })
}

/// Returns the annotation with its prefix, which `name` may leave out.
fn known_annotation(name: &str) -> Result<String, String> {
    let short = name.strip_prefix(PREFIX).unwrap_or(name);
    if ANNOTATIONS.iter().all(|known| known.name != short) {
        let known = ANNOTATIONS.map(|known| known.name).join(", ");
        return Err(format!(
            "unknown annotation {short}; known are {known}, and {DISTRIBUTION} for the field"
        ));
    }
    Ok(format!("{PREFIX}{short}"))
}

pub fn drain(text: &str) -> Result<DrainOf, String> {
    let wrong = || {
        format!("{text:?} is not LABEL=VALUE; write for example zone=b, or example.com/rack=r1,r2")
    };
    let (key, values) = text.split_once('=').ok_or_else(wrong)?;
    let values: Vec<Arc<str>> = values.split(',').map(str::trim).map(Arc::from).collect();
    if key.is_empty() || values.iter().any(|value| value.is_empty()) {
        return Err(wrong());
    }
    Ok(DrainOf {
        key: key.to_owned(),
        values,
    })
}

pub fn scale(text: &str) -> Result<Scale, String> {
    let wrong = || format!("{text:?} is not NS/SVC=ZONE:COUNT; write for example shop/cart=b:5");
    let (service, rest) = text.split_once('=').ok_or_else(wrong)?;
    let (zone, count) = rest.rsplit_once(':').ok_or_else(wrong)?;
    let count = count.parse().ok().filter(|count| *count <= MOST);
    let count = count
        .ok_or_else(|| format!("the count in {text:?} is not a whole number from 0 to {MOST}"))?;
    if zone.is_empty() {
        return Err(wrong());
    }
    Ok(Scale {
        service: ObjectName::parse(service).ok_or_else(wrong)?,
        zone: zone.into(),
        count,
    })
}

pub fn price(text: &str) -> Result<f64, String> {
    let price = text
        .parse()
        .ok()
        .filter(|price: &f64| (0.0..=HIGHEST_PRICE).contains(price));
    price.ok_or_else(|| {
        format!(
            "{text:?} is not a price; write what one GiB costs, such as 0.01, and at most {HIGHEST_PRICE}"
        )
    })
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match &self.part {
            Part::Annotation(name) => name.trim_start_matches(PREFIX),
            Part::TrafficDistribution => DISTRIBUTION,
        };
        match self.value.as_str() {
            "" => write!(f, "{} without {part}", self.service),
            value => write!(f, "{} with {part}: {value}", self.service),
        }
    }
}

impl fmt::Display for DrainOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} drained", self.key, self.values.join(", "))
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints = agent_api::numbers::many(self.count as u64, "ready endpoint");
        write!(f, "{} with {endpoints} in zone {}", self.service, self.zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_they_are_written_in_the_manual() {
        let read = set("shop/cart:weights=zone=90,*=10").unwrap();
        let weights = "topology.ipvs-topo.io/weights".to_owned();
        assert_eq!(read.part, Part::Annotation(weights));
        assert_eq!(read.value, "zone=90,*=10");
        assert_eq!(
            set(&format!("shop/cart:{PREFIX}weights=zone=90,*=10")),
            Ok(read)
        );
        let field = set("shop/cart:trafficDistribution=PreferSameZone").unwrap();
        assert_eq!(field.part, Part::TrafficDistribution);
        assert_eq!(
            field.to_string(),
            "shop/cart with trafficDistribution: PreferSameZone"
        );
        let none = set("shop/cart:trafficDistribution=").unwrap();
        assert_eq!(none.to_string(), "shop/cart without trafficDistribution");
        assert_eq!(
            drain("zone=b,c").unwrap().values,
            [Arc::from("b"), Arc::from("c")]
        );
        let read = scale("shop/cart=b:5").unwrap();
        assert_eq!((&*read.zone, read.count), ("b", 5));
        assert_eq!(price("0.01"), Ok(0.01));
    }

    #[test]
    fn an_invalid_change_is_refused_with_an_example() {
        for text in [
            "shop/cart",
            "shop/cart:weights",
            "cart:weights=1",
            "shop/cart:=1",
        ] {
            assert!(
                set(text).unwrap_err().contains("shop/cart:weights="),
                "{text}"
            );
        }
        for text in ["shop/cart:nosuch=1", "shop/cart:nosuch="] {
            let unknown = set(text).unwrap_err();
            assert!(
                unknown.starts_with("unknown annotation nosuch; known are mode, keys, weights"),
                "{unknown}"
            );
        }
        let unknown = set("shop/cart:trafficDistribution=Close").unwrap_err();
        assert!(unknown.contains("use PreferClose, PreferSameZone, PreferSameNode, or nothing"));
        for text in ["b", "=b", "zone=", "zone=b,"] {
            assert!(drain(text).unwrap_err().contains("zone=b"), "{text}");
        }
        for text in ["shop/cart", "shop/cart=b", "shop/cart=:5", "a/b/c=b:5"] {
            assert!(scale(text).unwrap_err().contains("shop/cart=b:5"), "{text}");
        }
        assert!(
            scale("shop/cart=b:-1")
                .unwrap_err()
                .contains("whole number")
        );
        assert!(price("-1").unwrap_err().contains("0.01"));
        for other in ["free", "NaN", "inf", "1e308"] {
            assert!(price(other).is_err(), "{other}");
        }
    }
}
