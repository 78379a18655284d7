//! A policy set made ready once: parsed, type-checked against the schema, kept with what each action needs of it.

use crate::diagnose::{self, Problem};
use crate::history::{Conditions, Sessions};
use crate::index::Index;
use crate::shape::Shape;
use cedar_policy::{Entities, EntityUid, PolicySet, Schema};
use dogwood::{Distincter, LoweredPolicySet, ParsedPolicySet, PolicySchema, ServiceSchema, Validator};
use dogwood_language as dogwood;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap, HashSet};

pub const TICKS_PER_SECOND: i64 = 1_000;
const GUARDRAILS: &str = include_str!("guardrails.json");

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    Cedar,
    Dogwood,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Mode {
    Active,
    LogOnly,
}

#[derive(Deserialize)]
pub struct PolicySource {
    pub id: String,
    pub text: String,
    pub language: Language,
    #[serde(default = "active")]
    pub mode: Mode,
}

fn active() -> Mode {
    Mode::Active
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    pub id: String,
    pub schema: String,
    pub policies: Vec<PolicySource>,
    pub limits: Limits,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    pub policies: usize,
    pub policy_bytes: usize,
    pub total_bytes: usize,
    pub schema_bytes: usize,
}

pub struct LoadedSet {
    pub schema: Schema,
    pub actions: HashMap<EntityUid, Action>,
    pub enforced: Index,
    /// The set with the LOG_ONLY policies in it, if there are any.
    pub logged: Option<Index>,
    pub names: HashMap<String, String>,
    pub conditions: Conditions,
    pub sessions: Sessions,
    pub guardrails: Vec<(String, HashSet<String>)>,
    /// Why the set denies everything, if it does.
    pub closed: Option<String>,
}

impl LoadedSet {
    /// Whether a policy as lowered asks for something of the history or a guardrail.
    pub fn hoisted(&self, text: &str) -> bool {
        let fields = self.conditions.ids().chain(self.guardrails.iter().map(|(id, _)| id.as_str()));
        fields.into_iter().any(|id| text.contains(id))
    }
}

pub struct Action {
    pub context: Shape,
    /// The action and its groups.
    pub entities: Entities,
    pub principals: HashSet<String>,
}

pub fn service() -> Result<ServiceSchema, String> {
    let providers = dogwood::ProviderDeclarations::from_json(GUARDRAILS)?;
    ServiceSchema::builder()
        .providers(providers)
        .build()
        .map_err(|error| error.to_string())
}

struct Checked {
    at: usize,
    parsed: ParsedPolicySet,
}

pub fn load(source: Source) -> (Option<LoadedSet>, Json) {
    let refused = |problem: Problem| (None, json!({ "loaded": false, "problems": [problem] }));
    if source.policies.len() > source.limits.policies {
        let message = format!(
            "{} policies; a set has at most {}",
            source.policies.len(),
            source.limits.policies
        );
        return refused(Problem::plain(None, message));
    }
    let total: usize = source.policies.iter().map(|policy| policy.text.len()).sum();
    if total > source.limits.total_bytes {
        let message = format!(
            "the policies have {total} bytes; a set has at most {}",
            source.limits.total_bytes
        );
        return refused(Problem::plain(None, message));
    }
    if source.schema.len() > source.limits.schema_bytes {
        let message = format!(
            "the schema has {} bytes; at most {} are read",
            source.schema.len(),
            source.limits.schema_bytes
        );
        return refused(Problem::plain(None, message));
    }
    let base = match Schema::from_cedarschema_str(&source.schema) {
        Ok((schema, _)) => schema,
        Err(error) => return refused(diagnose::problem(None, &error, &source.schema, &[])),
    };
    let (service, schema) = match (service(), PolicySchema::from_cedarschema_str(&source.schema)) {
        (Ok(service), Ok(schema)) => (service, schema),
        (Err(error), _) => return refused(Problem::plain(None, error)),
        (_, Err(error)) => return refused(Problem::plain(None, error.to_string())),
    };
    let actions = actions(&base);
    let names = known_names(&base, &actions);

    let mut problems = Vec::new();
    let mut broken: Vec<usize> = Vec::new();
    let mut checked = Vec::new();
    for (at, policy) in source.policies.iter().enumerate() {
        match parse(policy, &service, &names, source.limits.policy_bytes) {
            Ok(parsed) => checked.push(Checked { at, parsed }),
            Err(found) => {
                problems.extend(found);
                broken.push(at);
            }
        }
    }
    reject_untyped(&mut checked, &source, &schema, &names, &mut problems, &mut broken);
    let lowered = match lower(&checked.iter().collect::<Vec<_>>(), &schema) {
        Ok(lowered) => lowered,
        Err(error) => return refused(Problem::plain(None, error.to_string())),
    };
    if let Some(lowered) = &lowered {
        warnings(lowered, &checked, &source, &names, &mut problems);
    }
    let closed = broken
        .iter()
        .map(|at| &source.policies[*at])
        .find(|policy| policy.mode == Mode::Active && policy.text.contains("forbid"))
        .map(|policy| {
            format!(
                "policy {} no longer type-checks and may forbid: everything is denied",
                policy.id
            )
        });

    let needs: Vec<Json> = lowered
        .iter()
        .flat_map(|lowered| lowered.provider_fields())
        .map(need)
        .collect();
    let set = assemble(lowered, &checked, &source, base, actions, closed);
    let report = json!({
        "loaded": true,
        "closed": set.closed,
        "problems": problems,
        "broken": broken.iter().map(|at| &source.policies[*at].id).collect::<Vec<_>>(),
        "temporal": !set.conditions.is_empty(),
        "windowSeconds": set.conditions.window,
        "guardrails": needs,
        "actions": set.actions.keys().map(|action| action.id().unescaped().to_string()).collect::<Vec<_>>(),
    });
    (Some(set), report)
}

fn parse(
    policy: &PolicySource,
    service: &ServiceSchema,
    names: &[String],
    limit: usize,
) -> Result<ParsedPolicySet, Vec<Problem>> {
    let id = Some(policy.id.as_str());
    if policy.text.len() > limit {
        return Err(vec![Problem::plain(
            id,
            format!("{} bytes; a policy has at most {limit}", policy.text.len()),
        )]);
    }
    let parsed = ParsedPolicySet::parse(&policy.text, service).map_err(|error| diagnose::all(id, &error, &policy.text, names))?;
    if parsed.policy_count() != 1 {
        return Err(vec![Problem::plain(
            id,
            format!("{} statements; a policy is one statement", parsed.policy_count()),
        )]);
    }
    if policy.language == Language::Cedar && parsed.policies().any(|policy| policy.uses_temporal()) {
        let at = policy.text.find("temporal").unwrap_or(0);
        let message = "a temporal condition is not Cedar; give the statement as `policy`, not as `cedar`";
        return Err(vec![Problem::plain(id, message).at(&policy.text, at, "temporal".len())]);
    }
    if let Some(unknown) = parsed
        .policies()
        .flat_map(|policy| policy.undeclared_providers().collect::<Vec<_>>())
        .next()
    {
        let at = policy.text.find(&unknown).unwrap_or(0);
        let message = format!("no guardrail is named {unknown}");
        return Err(vec![Problem::plain(id, message).at(&policy.text, at, unknown.len())]);
    }
    Ok(parsed)
}

fn distincter(at: usize) -> Distincter {
    format!("p{at}").parse().expect("p and digits are an identifier")
}

fn lower(checked: &[&Checked], schema: &PolicySchema) -> Result<Option<LoweredPolicySet>, dogwood::Error> {
    if checked.is_empty() {
        return Ok(None);
    }
    let entries: Vec<_> = checked.iter().map(|one| (&one.parsed, distincter(one.at))).collect();
    dogwood::lower_many(&entries, schema).map(Some)
}

/// Takes out what does not type-check, halving: good halves cost one look each.
fn reject_untyped(
    checked: &mut Vec<Checked>,
    source: &Source,
    schema: &PolicySchema,
    names: &[String],
    problems: &mut Vec<Problem>,
    broken: &mut Vec<usize>,
) {
    let mut bad = HashSet::new();
    let all: Vec<&Checked> = checked.iter().collect();
    let mut parts = vec![all.as_slice()];
    while let Some(part) = parts.pop() {
        let found = findings(part, source, schema, names);
        if found.is_empty() {
            continue;
        }
        if part.len() == 1 {
            bad.insert(part[0].at);
            problems.extend(found);
        } else {
            let (left, right) = part.split_at(part.len() / 2);
            parts.push(right);
            parts.push(left);
        }
    }
    broken.extend(bad.iter());
    broken.sort_unstable();
    checked.retain(|one| !bad.contains(&one.at));
}

fn findings(part: &[&Checked], source: &Source, schema: &PolicySchema, names: &[String]) -> Vec<Problem> {
    let one = part.first().map(|one| &source.policies[one.at]);
    let (id, text) = one.map_or((None, ""), |policy| (Some(policy.id.as_str()), policy.text.as_str()));
    match lower(part, schema) {
        Err(error) => diagnose::all(id, &error, text, names),
        Ok(None) => Vec::new(),
        Ok(Some(lowered)) => Validator::new()
            .validate(&lowered)
            .validation_errors()
            .map(|error| diagnose::problem(id, error, text, names))
            .collect(),
    }
}

fn warnings(lowered: &LoweredPolicySet, checked: &[Checked], source: &Source, names: &[String], problems: &mut Vec<Problem>) {
    use miette::Diagnostic;
    for warning in Validator::new().validate(lowered).validation_warnings().take(100) {
        // A finding renders against its own policy's text; the same text twice has the same finding twice.
        let text = warning.source_code().and_then(|code| {
            let label = warning.labels()?.next()?;
            let span = code.read_span(label.inner(), usize::MAX / 2, usize::MAX / 2).ok()?;
            std::str::from_utf8(span.data()).ok().map(str::to_string)
        });
        let owner = text.as_deref().and_then(|text| {
            checked
                .iter()
                .map(|one| &source.policies[one.at])
                .find(|policy| policy.text == text)
        });
        let (id, text) = owner.map_or((None, ""), |policy| (Some(policy.id.as_str()), policy.text.as_str()));
        let mut problem = if owner.is_some() {
            diagnose::problem(id, warning, text, names)
        } else {
            Problem::plain(id, warning.to_string())
        };
        problem.severity = "warning";
        problem.suggestion = None;
        problems.push(problem);
    }
}

fn actions(schema: &Schema) -> HashMap<EntityUid, Action> {
    let entities = schema.action_entities().unwrap_or_else(|_| Entities::empty());
    let inner: &cedar_policy_core::validator::ValidatorSchema = schema.as_ref();
    inner
        .action_ids()
        .map(|action| {
            let uid = EntityUid::from(action.name().clone());
            let own = entities
                .ancestors(&uid)
                .into_iter()
                .flatten()
                .chain([&uid])
                .filter_map(|uid| entities.get(uid).cloned());
            let entities = Entities::from_entities(own, None).unwrap_or_else(|_| Entities::empty());
            let principals = action.applies_to_principals().map(ToString::to_string).collect();
            (
                uid,
                Action {
                    context: Shape::of(action.context_type()),
                    entities,
                    principals,
                },
            )
        })
        .filter(|(_, action)| !action.principals.is_empty())
        .collect()
}

fn known_names(schema: &Schema, actions: &HashMap<EntityUid, Action>) -> Vec<String> {
    let mut names: Vec<String> = actions.keys().map(|action| action.id().unescaped().to_string()).collect();
    for action in actions.values() {
        action.context.names(&mut names);
    }
    for ty in schema.entity_types() {
        names.push(ty.basename().to_string());
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn assemble(
    lowered: Option<LoweredPolicySet>,
    checked: &[Checked],
    source: &Source,
    base: Schema,
    actions: HashMap<EntityUid, Action>,
    closed: Option<String>,
) -> LoadedSet {
    let schema = lowered
        .as_ref()
        .map_or_else(|| base.clone(), |lowered| lowered.cedar_schema().clone());
    let rules: BTreeMap<usize, String> = lowered
        .iter()
        .flat_map(|lowered| lowered.rules())
        .map(|rule| (rule.rule_index, rule.cedar_policy_id))
        .collect();
    let mut names = HashMap::new();
    let mut log_only = HashSet::new();
    for (index, one) in checked.iter().enumerate() {
        let Some(cedar) = rules.get(&index) else { continue };
        let policy = &source.policies[one.at];
        names.insert(cedar.clone(), policy.id.clone());
        if policy.mode == Mode::LogOnly {
            log_only.insert(cedar.clone());
        }
    }
    let all = lowered
        .as_ref()
        .map_or_else(PolicySet::new, |lowered| lowered.as_cedar().clone());
    let enforced = if log_only.is_empty() {
        all.clone()
    } else {
        let kept = all
            .policies()
            .filter(|policy| !log_only.contains(AsRef::<str>::as_ref(policy.id())))
            .cloned();
        PolicySet::from_policies(kept).unwrap_or_else(|_| PolicySet::new())
    };
    let (leaves, keys): (Vec<_>, _) = lowered
        .as_ref()
        .map(|lowered| {
            (
                lowered.nonrelativized_temporal_fields().cloned().collect(),
                lowered.partition_keys().to_vec(),
            )
        })
        .unwrap_or_default();
    let conditions = Conditions::new(&leaves, &keys, &schema, TICKS_PER_SECOND);
    let guardrails = lowered
        .iter()
        .flat_map(|lowered| lowered.provider_fields())
        .map(|field| {
            (
                field.id.clone(),
                field.target_actions.iter().map(|action| action.id.clone()).collect(),
            )
        })
        .collect();
    let logged = (!log_only.is_empty()).then(|| Index::new(all));
    LoadedSet {
        schema,
        actions,
        enforced: Index::new(enforced),
        logged,
        names,
        conditions,
        sessions: Sessions::default(),
        guardrails,
        closed,
    }
}

fn need(field: &dogwood::ProviderField) -> Json {
    json!({
        "id": field.id,
        "name": field.invocation.key(),
        "args": field.invocation.args.iter().map(argument).collect::<Vec<_>>(),
        "methods": field.methods.iter().map(|method| &method.name).collect::<Vec<_>>(),
        "actions": field.target_actions.iter().map(|action| &action.id).collect::<Vec<_>>(),
    })
}

fn argument(argument: &dogwood::Arg) -> Json {
    match argument {
        dogwood::Arg::Field(path) => json!({ "field": path }),
        dogwood::Arg::String(text) => json!(text),
        dogwood::Arg::Integer(long) => json!(long),
        dogwood::Arg::Decimal(text) => json!(text),
        dogwood::Arg::Bool(flag) => json!(flag),
        dogwood::Arg::Set(items) => json!(items.iter().map(self::argument).collect::<Vec<_>>()),
    }
}
