//! Proof over all requests of a schema: a question becomes a script for a solver, which the host runs;
//! the solver's model comes back as a request that a person can read, replayed in the deciding engine first.

use crate::set::LoadedSet;
use cedar_policy::{Authorizer, Decision, Effect, Policy, PolicySet, RequestEnv};
use cedar_policy_symcc::err::Error;
use cedar_policy_symcc::solver::{Decision as Satisfiable, DecisionWithModel, Solver, SolverError};
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicy, CompiledPolicySet, Env, SmtLibScript};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// What a set has to be asked about.
pub fn outline(set: &LoadedSet) -> Json {
    let environments: Vec<Json> = set
        .schema
        .request_envs()
        .map(|env| {
            json!({
                "principal": env.principal().to_string(),
                "action": env.action().id().unescaped(),
                "resource": env.resource().to_string(),
            })
        })
        .collect();
    let policies: Vec<Json> = set
        .enforced
        .whole()
        .policies()
        .map(|policy| {
            let id = policy.id().to_string();
            let text = policy.to_cedar().unwrap_or_default();
            json!({
                "id": set.names.get(&id).unwrap_or(&id),
                "effect": if policy.effect() == Effect::Permit { "permit" } else { "forbid" },
                // A condition on the history or a score is free here: what holds for all of its values holds.
                "free": set.hoisted(&text),
            })
        })
        .collect();
    json!({ "environments": environments, "policies": policies })
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Question {
    /// Does the policy match every request?
    Always { policy: String },
    /// Does the policy match no request?
    Never { policy: String },
    /// Does `other` match whatever `policy` matches?
    Covered { policy: String, other: String },
    /// Does the other set allow whatever this one allows?
    Implies { other: String },
    /// Is everything allowed?
    AllowsAll,
    /// Is nothing allowed?
    AllowsNone,
}

#[derive(Deserialize)]
pub struct Check {
    set: String,
    environment: usize,
    question: Question,
    /// What the solver said of the script: `unsat`, or a model.
    reply: Option<Reply>,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "lowercase")]
enum Reply {
    Unsat,
    Model(String),
}

/// A solver that writes down what it is asked and answers what it was told.
struct Told {
    script: Vec<u8>,
    reply: Option<Reply>,
}

impl Solver for Told {
    fn smtlib_input(&mut self) -> &mut (dyn tokio::io::AsyncWrite + Unpin + Send) {
        &mut self.script
    }
    async fn enable_models(&mut self) -> Result<(), SolverError> {
        Ok(self.smtlib_input().set_option("produce-models", "true").await?)
    }
    async fn check_sat(&mut self) -> Result<Satisfiable, SolverError> {
        Ok(Satisfiable::Unknown)
    }
    async fn check_sat_with_model(&mut self) -> Result<DecisionWithModel, SolverError> {
        Ok(match self.reply.take() {
            None => DecisionWithModel::Unknown,
            Some(Reply::Unsat) => DecisionWithModel::Unsat,
            Some(Reply::Model(model)) => DecisionWithModel::Sat { model },
        })
    }
}

/// Runs a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> Result<T, String> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err("the symbolic compiler waited".to_string()),
    }
}

pub fn check(sets: &HashMap<String, LoadedSet>, check: Check) -> Result<Json, String> {
    let set = sets.get(&check.set).ok_or("the set is not loaded")?;
    let env = set
        .schema
        .request_envs()
        .nth(check.environment)
        .ok_or("no such environment")?;
    let find = |id: &str| -> Result<Policy, String> {
        let found = set.enforced.whole().policies().find(|policy| {
            let own = policy.id().to_string();
            set.names.get(&own).is_some_and(|name| name == id)
        });
        found.cloned().ok_or_else(|| format!("policy {id:?} is not enforced"))
    };
    let compile = |policy: &Policy| CompiledPolicy::compile(policy, &env, &set.schema).map_err(|error| error.to_string());
    let mut compiler = CedarSymCompiler::new(Told {
        script: Vec::new(),
        reply: check.reply,
    })
    .map_err(|error| error.to_string())?;
    let alone = |policy: &Policy| PolicySet::from_policies([policy.clone()]).map_err(|error| error.to_string());
    // `before` and `after`: what the replay asks to differ as the question says.
    let (found, replay): (Result<Option<Env>, Error>, Replayed) = match &check.question {
        Question::Always { policy } => {
            let policy = find(policy)?;
            let compiled = compile(&policy)?;
            let found = ready(compiler.check_always_matches_with_counterexample_opt(&compiled))?;
            (
                found,
                Replayed {
                    holds: vec![],
                    fails: vec![alone(&policy)?],
                },
            )
        }
        Question::Never { policy } => {
            let policy = find(policy)?;
            let compiled = compile(&policy)?;
            let found = ready(compiler.check_never_matches_with_counterexample_opt(&compiled))?;
            (
                found,
                Replayed {
                    holds: vec![alone(&policy)?],
                    fails: vec![],
                },
            )
        }
        Question::Covered { policy, other } => {
            let (policy, other) = (find(policy)?, find(other)?);
            let (first, second) = (compile(&policy)?, compile(&other)?);
            let found = ready(compiler.check_matches_implies_with_counterexample_opt(&first, &second))?;
            (
                found,
                Replayed {
                    holds: vec![alone(&policy)?],
                    fails: vec![alone(&other)?],
                },
            )
        }
        Question::Implies { other } => {
            let other = sets.get(other).ok_or("the other set is not loaded")?;
            let (first, second) = (compiled_set(set, &env, set)?, compiled_set(other, &env, set)?);
            let found = ready(compiler.check_implies_with_counterexample_opt(&first, &second))?;
            return settled(found, compiler, |env| {
                decision(set.enforced.whole(), env) == Decision::Allow && decision(other.enforced.whole(), env) == Decision::Deny
            });
        }
        Question::AllowsAll => {
            let compiled = compiled_set(set, &env, set)?;
            let found = ready(compiler.check_always_allows_with_counterexample_opt(&compiled))?;
            return settled(found, compiler, |env| decision(set.enforced.whole(), env) == Decision::Deny);
        }
        Question::AllowsNone => {
            let compiled = compiled_set(set, &env, set)?;
            let found = ready(compiler.check_always_denies_with_counterexample_opt(&compiled))?;
            return settled(found, compiler, |env| decision(set.enforced.whole(), env) == Decision::Allow);
        }
    };
    settled(found, compiler, |env| {
        replay.holds.iter().all(|policies| matches(policies, env)) && replay.fails.iter().all(|policies| !matches(policies, env))
    })
}

struct Replayed {
    holds: Vec<PolicySet>,
    fails: Vec<PolicySet>,
}

/// A set under the schema of the first: what another schema says differently is an error, and so not analysed.
fn compiled_set(set: &LoadedSet, env: &RequestEnv, first: &LoadedSet) -> Result<CompiledPolicySet, String> {
    CompiledPolicySet::compile(set.enforced.whole(), env, &first.schema).map_err(|error| error.to_string())
}

fn decision(policies: &PolicySet, env: &Env) -> Decision {
    Authorizer::new()
        .is_authorized(&env.request, policies, &env.entities)
        .decision()
}

fn matches(policies: &PolicySet, env: &Env) -> bool {
    Authorizer::new()
        .is_authorized(&env.request, policies, &env.entities)
        .diagnostics()
        .reason()
        .next()
        .is_some()
}

fn settled(
    found: Result<Option<Env>, Error>,
    compiler: CedarSymCompiler<Told>,
    replays: impl FnOnce(&Env) -> bool,
) -> Result<Json, String> {
    match found {
        Ok(None) => Ok(json!({ "holds": true })),
        Ok(Some(env)) if replays(&env) => Ok(json!({ "holds": false, "counterexample": example(&env) })),
        Ok(Some(_)) => Ok(json!({ "unclear": "the solver's example decides otherwise in the engine" })),
        Err(Error::SolverUnknown) => Ok(json!({ "script": String::from_utf8_lossy(&compiler.solver().script) })),
        Err(error) => Ok(json!({ "unclear": error.to_string() })),
    }
}

fn example(env: &Env) -> Json {
    let name = |uid: Option<&cedar_policy::EntityUid>| uid.map(ToString::to_string);
    // The actions' own hierarchy is the schema's, and says nothing of this request.
    let shown = env
        .entities
        .iter()
        .filter(|entity| entity.uid().type_name().basename() != "Action")
        .cloned();
    let entities = cedar_policy::Entities::from_entities(shown, None).and_then(|entities| entities.to_json_value());
    json!({
        "principal": name(env.request.principal()),
        "action": name(env.request.action()),
        "resource": name(env.request.resource()),
        "context": env.request.context().and_then(|context| context.to_json_value().ok()),
        "entities": entities.unwrap_or_default(),
    })
}
