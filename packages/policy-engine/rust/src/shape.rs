//! The types that a schema gives to a tool's input, and JSON made into values of them.

use cedar_policy::RestrictedExpression;
use cedar_policy_core::validator::types::Type;
use dogwood_language::Value;
use serde_json::Value as Json;
use std::collections::BTreeMap;

pub enum Shape {
    Bool,
    Long,
    Text,
    Decimal,
    Set(Box<Shape>),
    Record(BTreeMap<String, Field>),
    Other(String),
}

pub struct Field {
    pub shape: Shape,
    pub required: bool,
}

impl Shape {
    pub fn of(ty: &Type) -> Shape {
        match ty {
            Type::Bool(_) => Shape::Bool,
            Type::Long => Shape::Long,
            Type::String => Shape::Text,
            Type::Set {
                element_type: Some(element),
            } => Shape::Set(Box::new(Shape::of(element))),
            Type::Record { attrs, .. } => Shape::Record(
                attrs
                    .iter()
                    .map(|(name, attribute)| {
                        let field = Field {
                            shape: Shape::of(&attribute.attr_type),
                            required: attribute.is_required,
                        };
                        (name.to_string(), field)
                    })
                    .collect(),
            ),
            Type::ExtensionType { name } if name.to_string() == "decimal" => Shape::Decimal,
            other => Shape::Other(other.to_string()),
        }
    }

    pub fn field(&self, name: &str) -> Option<&Shape> {
        match self {
            Shape::Record(fields) => fields.get(name).map(|field| &field.shape),
            _ => None,
        }
    }

    /// The names of every attribute below, for "did you mean".
    pub fn names(&self, into: &mut Vec<String>) {
        match self {
            Shape::Record(fields) => {
                for (name, field) in fields {
                    into.push(name.clone());
                    field.shape.names(into);
                }
            }
            Shape::Set(element) => element.names(into),
            _ => {}
        }
    }
}

fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

/// A JSON number as Cedar's decimal text: at most four decimals, within 64 bits of ten-thousandths.
fn decimal(text: &str) -> Option<String> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !plain(whole) || !plain(fraction) || fraction.len() > 4 {
        return None;
    }
    let scaled: i128 = format!("{sign}{whole}{fraction:0<4}").parse().ok()?;
    i64::try_from(scaled).ok().map(|_| format!("{sign}{whole}.{fraction}"))
}

/// JSON as the value of a shape. What the schema does not name is left out, as no policy can speak of it;
/// an absent or null optional field is absent; anything else that does not fit is an error with its path.
pub fn typed(json: &Json, shape: &Shape, path: &str) -> Result<Value, String> {
    let wrong = |wanted: &str| Err(format!("{path} is {}; the tool's schema wants {wanted}", kind(json)));
    match (shape, json) {
        (Shape::Bool, Json::Bool(flag)) => Ok(Value::Bool(*flag)),
        (Shape::Text, Json::String(text)) => Ok(Value::String(text.clone())),
        (Shape::Long, Json::Number(number)) => match number.as_i64() {
            Some(long) => Ok(Value::Int(long)),
            None => Err(format!("{path} is {number}; an integer of at most 64 bits is wanted")),
        },
        (Shape::Decimal, Json::Number(number)) => match decimal(&number.to_string()) {
            Some(text) => Ok(Value::Decimal(text)),
            None => Err(format!("{path} is {number}; a decimal has at most four decimals and 64 bits")),
        },
        (Shape::Set(element), Json::Array(items)) => items
            .iter()
            .enumerate()
            .map(|(at, item)| typed(item, element, &format!("{path}[{at}]")))
            .collect::<Result<_, _>>()
            .map(Value::Array),
        (Shape::Record(fields), Json::Object(members)) => {
            let mut record = BTreeMap::new();
            for (name, field) in fields {
                match members.get(name) {
                    None | Some(Json::Null) if field.required => {
                        return Err(format!("{path}.{name} is missing; the tool's schema requires it"));
                    }
                    None | Some(Json::Null) => {}
                    Some(member) => {
                        record.insert(name.clone(), typed(member, &field.shape, &format!("{path}.{name}"))?);
                    }
                }
            }
            Ok(Value::Object(record))
        }
        (Shape::Bool, _) => wrong("a boolean"),
        (Shape::Text, _) => wrong("a string"),
        (Shape::Long, _) => wrong("an integer"),
        (Shape::Decimal, _) => wrong("a number"),
        (Shape::Set(_), _) => wrong("an array"),
        (Shape::Record(_), _) => wrong("an object"),
        (Shape::Other(name), _) => Err(format!("{path} has the type {name}, which no JSON value has")),
    }
}

/// JSON as it stands, for a past event whose tool has changed since: a field keeps what it can.
pub fn lenient(json: &Json, shape: Option<&Shape>) -> Value {
    if let Some(shape) = shape
        && let Ok(value) = typed(json, shape, "")
    {
        return value;
    }
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(long) => Value::Int(long),
            None => Value::Decimal(number.to_string()),
        },
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => {
            let element = match shape {
                Some(Shape::Set(element)) => Some(element.as_ref()),
                _ => None,
            };
            Value::Array(items.iter().map(|item| lenient(item, element)).collect())
        }
        Json::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, member)| (name.clone(), lenient(member, shape.and_then(|shape| shape.field(name)))))
                .collect(),
        ),
    }
}

pub fn expression(value: &Value) -> RestrictedExpression {
    match value {
        Value::Bool(flag) => RestrictedExpression::new_bool(*flag),
        Value::Int(long) => RestrictedExpression::new_long(*long),
        Value::String(text) => RestrictedExpression::new_string(text.clone()),
        Value::Decimal(text) => RestrictedExpression::new_decimal(text),
        Value::Array(items) => RestrictedExpression::new_set(items.iter().map(expression)),
        Value::Object(members) => {
            RestrictedExpression::new_record(members.iter().map(|(name, member)| (name.clone(), expression(member))))
                .unwrap_or_else(|_| RestrictedExpression::new_string(String::new()))
        }
        Value::Entity { .. } | Value::Null => RestrictedExpression::new_string(String::new()),
    }
}
