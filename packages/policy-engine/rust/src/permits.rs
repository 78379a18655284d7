//! Which tools some call could be permitted for: everything is known but the input, the time and the history.

use crate::decide::{NAMESPACE, Principal, uid};
use crate::set::LoadedSet;
use cedar_policy::{Decision, Entities, Entity, PartialEntities, PartialEntityUid, PartialRequest, RestrictedExpression};
use serde::Deserialize;
use serde_json::{Value as Json, json};

#[derive(Deserialize)]
pub struct Request {
    pub set: String,
    principal: Principal,
    resource: String,
    actions: Vec<String>,
}

pub fn permits(set: Option<&mut LoadedSet>, request: &Request) -> Result<Json, String> {
    let Some(set) = set else { return Ok(json!([])) };
    if set.closed.is_some() {
        return Ok(json!([]));
    }
    let (principal, resource) = (
        uid(&request.principal.ty, &request.principal.id)?,
        uid("Gateway", &request.resource)?,
    );
    let tags = request
        .principal
        .tags
        .iter()
        .map(|(name, value)| (name.clone(), RestrictedExpression::new_string(value.clone())));
    let id = (
        "id".to_string(),
        RestrictedExpression::new_string(request.principal.id.clone()),
    );
    let caller = Entity::new_with_tags(principal.clone(), [id], [], tags).map_err(|error| error.to_string())?;
    let known = Entities::from_entities([caller, Entity::with_uid(resource.clone())], Some(&set.schema))
        .map_err(|error| error.to_string())?;
    let known = PartialEntities::from_concrete(known, &set.schema).map_err(|error| error.to_string())?;
    let ty = format!("{NAMESPACE}::{}", request.principal.ty);
    let mut found = Vec::new();
    for name in &request.actions {
        let action_uid = uid("Action", name)?;
        let Some(action) = set.actions.get(&action_uid) else {
            continue;
        };
        if !action.principals.contains(&ty) {
            continue;
        }
        let slice = set.enforced.slice(&action_uid, &action.entities);
        let query = PartialRequest::new(
            PartialEntityUid::from_concrete(principal.clone()),
            action_uid.clone(),
            PartialEntityUid::from_concrete(resource.clone()),
            None,
            &set.schema,
        )
        .map_err(|error| error.to_string())?;
        let response = slice.tpe(&query, &known, &set.schema).map_err(|error| error.to_string())?;
        // Undecided is shown: some input may be permitted, and the call itself is decided anew.
        if response.decision() != Some(Decision::Deny) {
            found.push(name);
        }
    }
    Ok(json!(found))
}
