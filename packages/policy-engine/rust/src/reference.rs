//! The crates' own requests, for their own corpora: any schema, any namespace, the engine's parts in their loop.

use crate::history::Replayed;
use crate::index::Index;
use cedar_policy::{Context, Entities, EntityId, EntityTypeName, EntityUid, PolicySet, Request, Schema};
use dogwood::{
    AuthorizationDecision, AuthorizationRequest, Authorizer, Decision, LoweredPolicySet, PolicyEngine, PolicySchema,
    ServiceSchema,
};
use dogwood_language as dogwood;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::str::FromStr;
use std::sync::Mutex;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    policies: String,
    schema: String,
    event_schema: Option<String>,
    macros: Option<String>,
    #[serde(default)]
    logs: Vec<String>,
    #[serde(default)]
    partition: bool,
    #[serde(default)]
    stateless: bool,
    #[serde(default = "one")]
    ticks_per_second: i64,
}

fn one() -> i64 {
    1
}

/// Cedar's decision through the slice of the action.
struct Sliced(Mutex<Option<Index>>);

impl PolicyEngine for Sliced {
    fn prepare(&mut self, policies: &PolicySet, _: &Schema) -> Result<(), dogwood::Error> {
        self.0 = Mutex::new(Some(Index::new(policies.clone())));
        Ok(())
    }

    fn is_authorized(&self, asked: AuthorizationRequest<'_>) -> AuthorizationDecision {
        let denied = |why: &str| AuthorizationDecision {
            decision: Decision::Deny,
            determining_policy_ids: Vec::new(),
            errors: vec![why.to_string()],
        };
        let (Ok(mut index), Some(action)) = (self.0.lock(), asked.request.action()) else {
            return denied("no action");
        };
        let Some(index) = index.as_mut() else {
            return denied("not prepared");
        };
        let response =
            cedar_policy::Authorizer::new().is_authorized(asked.request, index.slice(action, asked.entities), asked.entities);
        AuthorizationDecision {
            decision: response.decision(),
            determining_policy_ids: response.diagnostics().reason().map(ToString::to_string).collect(),
            errors: response.diagnostics().errors().map(ToString::to_string).collect(),
        }
    }
}

pub fn replay(replay: &Replay) -> Result<Json, String> {
    let lower = || -> Result<LoweredPolicySet, String> {
        let mut service = ServiceSchema::builder();
        if let Some(events) = &replay.event_schema {
            service = service.event_schema_str(events);
        }
        if let Some(macros) = &replay.macros {
            service = service.macros_str(macros);
        }
        let service = service.build().map_err(|error| error.to_string())?;
        let schema = PolicySchema::from_cedarschema_str(&replay.schema).map_err(|error| error.to_string())?;
        LoweredPolicySet::from_str(&replay.policies, &service, &schema).map_err(|error| error.to_string())
    };
    let valid = match lower() {
        Ok(lowered) => dogwood::Validator::new().validate(&lowered).validation_passed(),
        Err(error) => return Ok(json!({ "rejected": error })),
    };
    let mut verdicts = Vec::new();
    for log in &replay.logs {
        let mut builder = Authorizer::builder(lower()?)
            .policy_engine(Sliced(Mutex::new(None)))
            .temporal_engine(Replayed::new(replay.stateless, replay.ticks_per_second));
        if replay.partition {
            builder = builder.partition_temporal();
        }
        let mut authorizer = builder.build().map_err(|error| error.to_string())?;
        let events = dogwood::parse_trace(log).map_err(|error| error.to_string())?;
        let mut lines = Vec::new();
        for (at, event) in events.iter().enumerate() {
            if let Some(response) = authorizer.is_authorized(event) {
                lines.push(format!("@{} (time point {at}): {}", event.timestamp(), response.allowed()));
            }
        }
        verdicts.push(lines.join("\n"));
    }
    Ok(json!({ "verdicts": verdicts, "valid": valid }))
}

#[derive(Deserialize)]
struct Uid {
    #[serde(rename = "type")]
    ty: String,
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CedarRequest {
    principal: Uid,
    action: Uid,
    resource: Uid,
    #[serde(default)]
    context: Json,
    #[serde(default)]
    validate: bool,
}

#[derive(Deserialize)]
pub struct Cedar {
    policies: String,
    schema: String,
    entities: Json,
    requests: Vec<CedarRequest>,
}

/// Cedar's integration tests as they are written: a set, a schema, entities and requests with expected answers.
pub fn cedar(test: Cedar) -> Result<Json, String> {
    let policies = PolicySet::from_str(&test.policies).map_err(|error| error.to_string())?;
    let (schema, _) = Schema::from_cedarschema_str(&test.schema).map_err(|error| error.to_string())?;
    let valid = cedar_policy::Validator::new(schema.clone())
        .validate(&policies, cedar_policy::ValidationMode::default())
        .validation_passed();
    let entities = Entities::from_json_value(test.entities, Some(&schema)).map_err(|error| error.to_string())?;
    let mut index = Index::new(policies);
    let uid = |uid: Uid| -> Result<EntityUid, String> {
        let ty = EntityTypeName::from_str(&uid.ty).map_err(|error| error.to_string())?;
        Ok(EntityUid::from_type_name_and_id(ty, EntityId::new(uid.id)))
    };
    let mut answers = Vec::new();
    for request in test.requests {
        let action = uid(request.action)?;
        let checked = request.validate.then_some(&schema);
        let context = Context::from_json_value(request.context, checked.map(|schema| (schema, &action)))
            .map_err(|error| error.to_string())?;
        let query = Request::new(
            uid(request.principal)?,
            action.clone(),
            uid(request.resource)?,
            context,
            checked,
        )
        .map_err(|error| error.to_string())?;
        let response = cedar_policy::Authorizer::new().is_authorized(&query, index.slice(&action, &entities), &entities);
        let mut reason: Vec<String> = response.diagnostics().reason().map(ToString::to_string).collect();
        let mut errors: Vec<String> = response
            .diagnostics()
            .errors()
            .map(|error| {
                let cedar_policy::AuthorizationError::PolicyEvaluationError(inner) = error;
                inner.policy_id().to_string()
            })
            .collect();
        reason.sort_unstable();
        errors.sort_unstable();
        answers.push(json!({
            "decision": if response.decision() == cedar_policy::Decision::Allow { "allow" } else { "deny" },
            "reason": reason,
            "errors": errors,
        }));
    }
    Ok(json!({ "valid": valid, "answers": answers }))
}
