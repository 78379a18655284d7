//! One decision. Whatever goes wrong in it denies.

use crate::index::Index;
use crate::set::{Action, LoadedSet};
use crate::shape::{self, Shape};
use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request as CedarRequest,
    RestrictedExpression,
};
use dogwood_language::{Event, EventBuilder, TemporalBindings, Value};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

pub const NAMESPACE: &str = "AgentCore";

#[derive(Deserialize)]
pub struct Principal {
    #[serde(rename = "type")]
    pub ty: String,
    pub id: String,
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

#[derive(Deserialize)]
pub struct Request {
    pub set: String,
    pub principal: Principal,
    pub action: String,
    pub resource: String,
    #[serde(default)]
    pub input: Json,
    pub output: Option<Json>,
    /// Milliseconds since 1970.
    pub now: i64,
    #[serde(default)]
    history: Vec<Past>,
    session: Option<SessionRef>,
    #[serde(default)]
    scores: BTreeMap<String, Json>,
}

/// A session whose events the engine keeps: those up to `after` are here, `history` has the ones since.
#[derive(Deserialize)]
struct SessionRef {
    id: String,
    after: i64,
    sequence: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Past {
    kind: String,
    action: String,
    time: i64,
    principal: PastPrincipal,
    resource: String,
    #[serde(default)]
    input: Json,
    output: Option<Json>,
    #[serde(default)]
    request_id: String,
    #[serde(default)]
    session_id: String,
}

#[derive(Deserialize)]
struct PastPrincipal {
    #[serde(rename = "type")]
    ty: String,
    id: String,
}

pub fn uid(ty: &str, id: &str) -> Result<EntityUid, String> {
    let name = EntityTypeName::from_str(&format!("{NAMESPACE}::{ty}")).map_err(|_| format!("{ty:?} is no entity type"))?;
    Ok(EntityUid::from_type_name_and_id(name, EntityId::new(id)))
}

fn denied(errors: Vec<String>) -> Json {
    json!({ "decision": "DENY", "determining": [], "errors": errors })
}

pub fn decide(set: Option<&mut LoadedSet>, request: Request) -> Json {
    let Some(set) = set else {
        return denied(vec![format!("policy set {:?} is not loaded", request.set)]);
    };
    if let Some(session) = &request.session
        && set.sessions.held(&session.id) != session.after
    {
        return json!({ "held": set.sessions.held(&session.id) });
    }
    decided(set, request).unwrap_or_else(|error| denied(vec![error]))
}

fn decided(set: &mut LoadedSet, request: Request) -> Result<Json, String> {
    let (principal, resource) = (
        uid(&request.principal.ty, &request.principal.id)?,
        uid("Gateway", &request.resource)?,
    );
    let action_uid = uid("Action", &request.action)?;
    let action = set
        .actions
        .get(&action_uid)
        .ok_or_else(|| format!("no tool is named {:?} in the schema of this policy set", request.action))?;
    if !action.principals.contains(&format!("{NAMESPACE}::{}", request.principal.ty)) {
        return Err(format!(
            "a principal of the type {} cannot call this tool",
            request.principal.ty
        ));
    }
    let empty = Json::Object(Default::default());
    let given = if request.input.is_null() { &empty } else { &request.input };
    let input = match action.context.field("input") {
        Some(shape) => shape::typed(given, shape, "input")?,
        None => Value::Object(BTreeMap::new()),
    };
    let output = match (&request.output, action.context.field("output")) {
        (Some(output), Some(shape)) => Some(shape::typed(output, shape, "output")?),
        _ => None,
    };
    let bindings = temporal(set, &request, &input)?;
    let context = context(set, &request, &input, output.as_ref(), bindings)?;
    let action = &set.actions[&action_uid];
    let entities = entities(action, &request.principal, &principal, &resource)?;
    let query = CedarRequest::new(principal, action_uid.clone(), resource, context, None).map_err(|error| error.to_string())?;

    if let Some(reason) = &set.closed {
        return Err(reason.clone());
    }
    let (decision, determining, errors) = answer(
        set.enforced.slice(&action_uid, &action.entities),
        &set.names,
        &query,
        &entities,
    );
    let mut answered = json!({ "decision": decision, "determining": determining, "errors": errors });
    if let Some(logged) = &mut set.logged {
        let index: &mut Index = logged;
        let (would, why, _) = answer(index.slice(&action_uid, &action.entities), &set.names, &query, &entities);
        if would != decision {
            answered["logOnly"] = json!({ "decision": would, "determining": why });
        }
    }
    Ok(answered)
}

fn answer(
    policies: &cedar_policy::PolicySet,
    names: &HashMap<String, String>,
    query: &CedarRequest,
    entities: &Entities,
) -> (&'static str, Vec<String>, Vec<String>) {
    let response = Authorizer::new().is_authorized(query, policies, entities);
    let name = |id: &str| names.get(id).cloned().unwrap_or_else(|| id.to_string());
    let mut determining: Vec<String> = response.diagnostics().reason().map(|id| name(id.as_ref())).collect();
    determining.sort_unstable();
    let mut errors: Vec<String> = response
        .diagnostics()
        .errors()
        .map(|error| {
            let cedar_policy::AuthorizationError::PolicyEvaluationError(inner) = error;
            format!("policy {}: {}", name(inner.policy_id().as_ref()), inner.inner())
        })
        .collect();
    errors.sort_unstable();
    // An error inside a decision denies: the policy that failed might have been one that forbids.
    let allowed = response.decision() == Decision::Allow && errors.is_empty();
    if allowed {
        return ("ALLOW", determining, errors);
    }
    if response.decision() == Decision::Allow {
        determining.clear();
    }
    ("DENY", determining, errors)
}

fn entities(action: &Action, principal: &Principal, uid: &EntityUid, resource: &EntityUid) -> Result<Entities, String> {
    let tags = principal
        .tags
        .iter()
        .map(|(name, value)| (name.clone(), RestrictedExpression::new_string(value.clone())));
    let id = ("id".to_string(), RestrictedExpression::new_string(principal.id.clone()));
    let caller = Entity::new_with_tags(uid.clone(), [id], [], tags).map_err(|error| error.to_string())?;
    action
        .entities
        .clone()
        .add_entities([caller, Entity::with_uid(resource.clone())], None)
        .map_err(|error| error.to_string())
}

/// A time as Cedar reads it.
fn datetime(milliseconds: i64) -> RestrictedExpression {
    let (days, rest) = (milliseconds.div_euclid(86_400_000), milliseconds.rem_euclid(86_400_000));
    // Civil date of a day number, counted from March so that the leap day is a year's last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second, milli) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60, rest % 1_000);
    RestrictedExpression::new_datetime(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"
    ))
}

fn context(
    set: &LoadedSet,
    request: &Request,
    input: &Value,
    output: Option<&Value>,
    bindings: TemporalBindings,
) -> Result<Context, String> {
    let system =
        RestrictedExpression::new_record([("now".to_string(), datetime(request.now))]).map_err(|error| error.to_string())?;
    let mut pairs = vec![
        ("input".to_string(), shape::expression(input)),
        ("system".to_string(), system),
    ];
    if let Some(output) = output {
        pairs.push(("output".to_string(), shape::expression(output)));
    }
    for (id, holds) in bindings {
        pairs.push((id, RestrictedExpression::new_bool(holds)));
    }
    let mut scores = Vec::new();
    for (id, actions) in &set.guardrails {
        if !actions.contains(&request.action) {
            continue;
        }
        let score = request
            .scores
            .get(id)
            .ok_or_else(|| format!("the guardrail {id} gave no score"))?;
        scores.push((id.clone(), score_expression(score)?));
    }
    if !scores.is_empty() {
        let record = RestrictedExpression::new_record(scores).map_err(|error| error.to_string())?;
        pairs.push(("providers".to_string(), record));
    }
    Context::from_pairs(pairs).map_err(|error| error.to_string())
}

/// A guardrail's answer: scores are JSON strings of decimals under `confidenceScore`, or one alone.
fn score_expression(score: &Json) -> Result<RestrictedExpression, String> {
    let wrong = || format!("{score} is no score of a guardrail");
    match score {
        Json::Object(members) => {
            if let Some(text) = members.get("decimal").and_then(Json::as_str) {
                return Ok(RestrictedExpression::new_decimal(text));
            }
            let fields: Result<Vec<_>, String> = members
                .iter()
                .map(|(name, member)| Ok((name.clone(), score_expression(member)?)))
                .collect();
            RestrictedExpression::new_record(fields?).map_err(|error| error.to_string())
        }
        Json::Number(number) => number.as_i64().map(RestrictedExpression::new_long).ok_or_else(wrong),
        Json::Array(items) => Ok(RestrictedExpression::new_set(
            items.iter().map(score_expression).collect::<Result<Vec<_>, _>>()?,
        )),
        Json::String(text) => Ok(RestrictedExpression::new_string(text.clone())),
        Json::Bool(_) | Json::Null => Err(wrong()),
    }
}

fn builder(action: &str, kind: &str, time: i64, principal: (&str, &str), resource: &str) -> EventBuilder {
    let ty = format!("{NAMESPACE}::{}", principal.0);
    let gateway = format!("{NAMESPACE}::Gateway");
    Event::builder_for(&[NAMESPACE, "Action"], action, kind)
        .timestamp(time)
        .principal_for(&ty, principal.1)
        .resource_for(&gateway, resource)
        .logged_field(
            "callerPrincipal",
            Value::Entity {
                ty,
                id: principal.1.to_string(),
            },
        )
        .logged_field(
            "callerResource",
            Value::Entity {
                ty: gateway,
                id: resource.to_string(),
            },
        )
}

fn past(event: &Past, set: &LoadedSet) -> Result<Event, String> {
    let shape = set.actions.get(&uid("Action", &event.action)?).map(|action| &action.context);
    let side = |name: &str| shape.and_then(|shape| Shape::field(shape, name));
    let mut built = builder(
        &event.action,
        &event.kind,
        event.time,
        (&event.principal.ty, &event.principal.id),
        &event.resource,
    )
    .logged_field("requestId", Value::String(event.request_id.clone()))
    .logged_field("sessionId", Value::String(event.session_id.clone()))
    .logged_field("input", shape::lenient(&event.input, side("input")));
    if let Some(output) = &event.output {
        built = built.logged_field("output", shape::lenient(output, side("output")));
    }
    Ok(built.build())
}

fn temporal(set: &mut LoadedSet, request: &Request, input: &Value) -> Result<TemporalBindings, String> {
    if set.conditions.is_empty() {
        return Ok(TemporalBindings::new());
    }
    let news = request
        .history
        .iter()
        .map(|event| past(event, set))
        .collect::<Result<Vec<_>, _>>()?;
    let session_id = request
        .session
        .as_ref()
        .map_or_else(String::new, |session| session.id.clone());
    let current = builder(
        &request.action,
        "request",
        request.now,
        (&request.principal.ty, &request.principal.id),
        &request.resource,
    )
    .logged_field("requestId", Value::String(String::new()))
    .logged_field("sessionId", Value::String(session_id))
    .logged_field("input", input.clone())
    .request_context_field("input", input.clone())
    .build();
    match &request.session {
        Some(session) => set
            .sessions
            .decide(&session.id, &set.conditions, news, current, session.sequence),
        None => {
            let mut trace = set.conditions.trace();
            for event in news {
                trace.observe(event);
            }
            set.conditions.evaluate(&mut trace, current)
        }
    }
}
