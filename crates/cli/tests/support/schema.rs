//! Every object that a test sees is held against `warploom schema`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

const SCHEMA: &str = include_str!("../../src/schema.json");

/// Checks the object that a command printed, if it printed one. `arguments` say which command it was.
#[track_caller]
pub(crate) fn conforms<S: AsRef<str>>(arguments: &[S], stdout: &[u8]) {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    if !arguments.contains(&"--json") || stdout.is_empty() {
        return;
    }
    let object: Value = serde_json::from_slice(stdout).unwrap();
    let name = definition(&arguments);
    if let Err(error) = against(&name, &object) {
        panic!("{arguments:?} does not conform to `{name}`: {error}\n{object}");
    }
}

/// Whether an object is what a definition of the schema says.
pub(crate) fn against(definition: &str, object: &Value) -> Result<(), String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let start = serde_json::json!({ "$ref": format!("#/$defs/{definition}") });
    Validator { root: &schema }.check(&start, object, "").map(|_| ())
}

/// The definition of a command's object.
fn definition(arguments: &[&str]) -> String {
    let words: Vec<&&str> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let list = arguments.contains(&"--list");
    match (*words[0], words.get(1)) {
        ("run", Some(file)) if file.ends_with(".toml") => "plan".to_string(),
        ("work" | "repro", _) if list => format!("{}_list", words[0]),
        ("chips", Some(_)) => "chip".to_string(),
        ("sweep", Some(action)) => format!("sweep_{action}"),
        (command, _) => command.to_string(),
    }
}

/// The part of JSON Schema that the schema uses.
struct Validator<'a> {
    root: &'a Value,
}

impl Validator<'_> {
    /// Returns the keys of an object that the schema names.
    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<BTreeSet<String>, String> {
        let mut named = BTreeSet::new();
        let schema = schema.as_object().ok_or("a schema is an object")?;
        if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(&path[1..]).ok_or_else(|| format!("no {path}"))?;
            named.extend(self.check(target, value, at)?);
        }
        if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
            let tried: Vec<_> = choices.iter().map(|choice| self.check(choice, value, at)).collect();
            match tried.iter().find_map(|tried| tried.as_ref().ok()) {
                Some(keys) => named.extend(keys.clone()),
                None => {
                    let errors: Vec<_> = tried.into_iter().filter_map(Result::err).collect();
                    return Err(errors.join(", or "));
                }
            }
        }
        self.check_plain(schema, value, at)?;
        if let Some(object) = value.as_object() {
            self.check_keys(schema, object, at, &mut named)?;
        }
        if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
            for (index, item) in list.iter().enumerate() {
                self.check(items, item, &format!("{at}[{index}]"))?;
            }
        }
        Ok(named)
    }

    fn check_plain(&self, schema: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
        let is = |name: &str| match name {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            _ => value.is_object(),
        };
        let fits = match schema.get("type") {
            None => true,
            Some(Value::String(name)) => is(name),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(is),
            Some(other) => return Err(format!("{other} is no type")),
        };
        let known = schema.get("enum").and_then(Value::as_array).is_none_or(|known| known.contains(value));
        let equal = schema.get("const").is_none_or(|constant| constant == value);
        match fits && known && equal {
            true => Ok(()),
            false => Err(format!("`{at}` is {value}, not as {}", Value::Object(schema.clone()))),
        }
    }

    fn check_keys(
        &self,
        schema: &Map<String, Value>,
        object: &Map<String, Value>,
        at: &str,
        named: &mut BTreeSet<String>,
    ) -> Result<(), String> {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for key in required.filter_map(Value::as_str) {
            object.get(key).ok_or_else(|| format!("`{at}` has no `{key}`"))?;
        }
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        for (key, value) in object {
            match (properties.get(key), schema.get("additionalProperties")) {
                (Some(schema), _) => {
                    self.check(schema, value, &format!("{at}.{key}"))?;
                    named.insert(key.clone());
                }
                (None, Some(Value::Bool(false))) => {
                    return Err(format!("`{at}` has `{key}`, unknown to the schema"));
                }
                (None, Some(schema)) => {
                    self.check(schema, value, &format!("{at}.{key}"))?;
                    named.insert(key.clone());
                }
                (None, None) => {}
            }
        }
        let closed = schema.get("unevaluatedProperties") == Some(&Value::Bool(false));
        match object.keys().find(|key| closed && !named.contains(*key)) {
            Some(key) => Err(format!("`{at}` has `{key}`, unknown to the schema")),
            None => Ok(()),
        }
    }
}
