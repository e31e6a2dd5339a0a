//! Requests for one object of the fake: reads, and writes with versions, generations and a status
//! subresource.

use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value, json};

use super::{World, status};

struct Target {
    collection: String,
    name: String,
    is_status: bool,
}

impl World {
    /// Handles a request that reads, writes or creates one object; returns `None` for others.
    pub(super) fn object(&mut self, method: &Method, path: &str, body: &[u8]) -> Option<Response> {
        if method == Method::POST {
            return Some(self.create(path, parse(body)));
        }
        let target = self.target(path)?;
        let objects = self.objects.get(&target.collection)?;
        let has_name = |object: &&Value| object["metadata"]["name"] == *target.name;
        let Some(current) = objects.iter().find(has_name).cloned() else {
            return Some(status(404, "NotFound", "not found"));
        };
        Some(match *method {
            Method::PUT => self.update(&target, &current, parse(body)),
            Method::PATCH => {
                let mut next = current.clone();
                merge(&mut next, &parse(body));
                self.update(&target, &current, next)
            }
            Method::DELETE => {
                self.remove(&target.collection, &target.name);
                (StatusCode::OK, current.to_string()).into_response()
            }
            _ => (StatusCode::OK, current.to_string()).into_response(),
        })
    }

    fn target(&self, path: &str) -> Option<Target> {
        let of = |collection: &String| {
            let rest = path.strip_prefix(collection.as_str())?.strip_prefix('/')?;
            let (name, is_status) = match rest.strip_suffix("/status") {
                Some(name) => (name, true),
                None => (rest, false),
            };
            (!name.contains('/')).then(|| Target {
                collection: collection.clone(),
                name: name.to_owned(),
                is_status,
            })
        };
        self.objects.keys().find_map(of)
    }

    fn create(&mut self, collection: &str, mut object: Value) -> Response {
        let objects = self.objects.entry(collection.to_owned()).or_default();
        let name = &object["metadata"]["name"];
        if objects.iter().any(|old| old["metadata"]["name"] == *name) {
            return status(409, "AlreadyExists", "already exists");
        }
        object["metadata"]["generation"] = json!(1);
        let made = self.add(collection, object);
        (StatusCode::CREATED, made.to_string()).into_response()
    }

    fn update(&mut self, target: &Target, current: &Value, mut next: Value) -> Response {
        let version = &current["metadata"]["resourceVersion"];
        let named = &next["metadata"]["resourceVersion"];
        if !named.is_null() && named != version {
            return status(409, "Conflict", "the object has been modified");
        }
        let (mut after, rest) = if target.is_status {
            (current.clone(), &mut next)
        } else {
            (next, &mut current.clone())
        };
        put(&mut after, "status", rest["status"].take());
        let mut generation = current["metadata"]["generation"].as_u64().unwrap_or(1);
        generation += u64::from(after["spec"] != current["spec"]);
        after["metadata"]["generation"] = json!(generation);
        after["metadata"]["resourceVersion"] = version.clone();
        if after != *current {
            after = self.replace(&target.collection, after);
        }
        (StatusCode::OK, after.to_string()).into_response()
    }
}

fn parse(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

/// Sets a field; removes it if the value is null.
fn put(object: &mut Value, field: &str, value: Value) {
    let fields = object.as_object_mut().unwrap();
    if value.is_null() {
        fields.remove(field);
    } else {
        fields.insert(field.to_owned(), value);
    }
}

/// JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (field, change) in patch {
        if change.is_null() {
            put(target, field, Value::Null);
        } else {
            merge(&mut target[field.as_str()], change);
        }
    }
}
