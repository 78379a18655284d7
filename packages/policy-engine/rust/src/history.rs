//! What a session did before: past events, kept in the engine or handed over, and the temporal conditions over them.

use dogwood_language::cedar::Schema;
use dogwood_language::temporal_ast::{AggExprKind, Condition, ConditionKind, Interval, Term, TimeUnit, WithinSpec};
use dogwood_language::{
    DecisionLeafMap, Error, Event, EventSignature, InMemoryTemporalEngine, PartitionKey, TemporalBindings, TemporalEngine,
    TemporalField,
};
use std::collections::HashMap;

/// The temporal conditions of a set. Times are ticks: windows are scaled from seconds.
pub struct Conditions {
    leaves: Vec<TemporalField>,
    map: DecisionLeafMap,
    keys: Vec<PartitionKey>,
    schema: Schema,
    pub window: i64,
}

impl Conditions {
    pub fn new(leaves: &[TemporalField], keys: &[PartitionKey], schema: &Schema, ticks_per_second: i64) -> Conditions {
        let map = DecisionLeafMap::build(leaves, schema);
        let window = leaves.iter().map(|leaf| window(&leaf.condition.condition)).max().unwrap_or(0);
        let leaves = leaves
            .iter()
            .cloned()
            .map(|mut leaf| {
                if ticks_per_second != 1 {
                    scale(&mut leaf.condition.condition, ticks_per_second);
                }
                leaf
            })
            .collect();
        Conditions {
            leaves,
            map,
            keys: keys.to_vec(),
            schema: schema.clone(),
            window,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.leaves.iter().map(|leaf| leaf.id.as_str())
    }

    pub fn trace(&self) -> Trace {
        let mut engine = InMemoryTemporalEngine::new();
        if !self.keys.is_empty() {
            engine.set_partition_keys(&self.keys);
        }
        Trace {
            engine,
            last: i64::MIN,
            length: 0,
        }
    }

    /// Every condition's truth at `event`, which becomes the newest of the trace.
    pub fn evaluate(&self, trace: &mut Trace, event: Event) -> Result<TemporalBindings, String> {
        let needed = self.map.needed_for(&event);
        let (mut run, mut found) = (Vec::new(), TemporalBindings::new());
        for leaf in &self.leaves {
            match &needed {
                Some(ids) if !ids.contains(&leaf.id) => {
                    found.insert(leaf.id.clone(), false);
                }
                _ => run.push(leaf.clone()),
            }
        }
        trace.observe(event);
        if !run.is_empty() {
            trace
                .engine
                .prepare(&run, &self.schema, &[])
                .map_err(|error| error.to_string())?;
            found.extend(trace.engine.evaluate()?);
        }
        Ok(found)
    }
}

/// Events in their order. A time before the last one counts as the last one: a clock that steps back orders nothing anew.
pub struct Trace {
    engine: InMemoryTemporalEngine,
    last: i64,
    pub length: usize,
}

impl Trace {
    pub fn observe(&mut self, event: Event) {
        let event = if event.timestamp() < self.last {
            event.into_builder().timestamp(self.last).build()
        } else {
            event
        };
        self.last = event.timestamp();
        self.length += 1;
        self.engine.observe(&event);
    }
}

const SESSIONS: usize = 1_000;
const EVENTS: usize = 200_000;

/// The sessions whose events are kept here, so that a call hands over only what is new.
/// The least lately used go first; one that went is handed over anew.
#[derive(Default)]
pub struct Sessions {
    kept: HashMap<String, Session>,
    events: usize,
    clock: u64,
}

struct Session {
    trace: Trace,
    sequence: i64,
    used: u64,
}

impl Sessions {
    /// The number of the last event held of a session; 0 if none.
    pub fn held(&self, id: &str) -> i64 {
        self.kept.get(id).map_or(0, |session| session.sequence)
    }

    pub fn forget(&mut self, id: &str) -> bool {
        let gone = self.kept.remove(id);
        self.events -= gone.as_ref().map_or(0, |session| session.trace.length);
        gone.is_some()
    }

    pub fn decide(
        &mut self,
        id: &str,
        conditions: &Conditions,
        news: Vec<Event>,
        request: Event,
        sequence: i64,
    ) -> Result<TemporalBindings, String> {
        self.clock += 1;
        let session = self.kept.entry(id.to_string()).or_insert_with(|| Session {
            trace: conditions.trace(),
            sequence: 0,
            used: 0,
        });
        self.events += news.len() + 1;
        for event in news {
            session.trace.observe(event);
        }
        session.sequence = sequence;
        session.used = self.clock;
        let found = conditions.evaluate(&mut session.trace, request);
        while self.kept.len() > SESSIONS || (self.events > EVENTS && !self.kept.is_empty()) {
            let Some(oldest) = self
                .kept
                .iter()
                .min_by_key(|(_, session)| session.used)
                .map(|(id, _)| id.clone())
            else {
                break;
            };
            self.forget(&oldest);
        }
        found
    }
}

/// The same conditions for the crates' own loop, which the corpora run through.
pub struct Replayed {
    conditions: Option<Conditions>,
    keys: Vec<PartitionKey>,
    trace: Option<Trace>,
    current: Option<Event>,
    ticks_per_second: i64,
    pub stateless: bool,
    seen: Vec<Event>,
}

impl Replayed {
    pub fn new(stateless: bool, ticks_per_second: i64) -> Replayed {
        Replayed {
            conditions: None,
            keys: Vec::new(),
            trace: None,
            current: None,
            ticks_per_second,
            stateless,
            seen: Vec::new(),
        }
    }
}

impl TemporalEngine for Replayed {
    fn prepare(&mut self, leaves: &[TemporalField], schema: &Schema, _: &[EventSignature]) -> Result<(), Error> {
        self.conditions = Some(Conditions::new(leaves, &self.keys, schema, self.ticks_per_second));
        Ok(())
    }

    fn observe(&mut self, event: &Event) {
        let event = match self.ticks_per_second {
            1 => event.clone(),
            ticks => {
                let time = event.timestamp().saturating_mul(ticks);
                event.clone().into_builder().timestamp(time).build()
            }
        };
        let Some(conditions) = &self.conditions else { return };
        if let Some(before) = self.current.replace(event) {
            if self.stateless {
                self.seen.push(before);
            } else {
                self.trace.get_or_insert_with(|| conditions.trace()).observe(before);
            }
        }
    }

    fn evaluate(&mut self) -> Result<TemporalBindings, String> {
        let (Some(conditions), Some(event)) = (&self.conditions, self.current.take()) else {
            return Err("no event".to_string());
        };
        if self.stateless {
            let mut trace = conditions.trace();
            for past in &self.seen {
                trace.observe(past.clone());
            }
            self.seen.push(event.clone());
            return conditions.evaluate(&mut trace, event);
        }
        let trace = self.trace.get_or_insert_with(|| conditions.trace());
        conditions.evaluate(trace, event)
    }

    fn supports_partitioning(&self) -> bool {
        true
    }

    fn set_partition_keys(&mut self, keys: &[PartitionKey]) {
        self.keys = keys.to_vec();
    }
}

/// The seconds that a condition looks back, nested windows added.
pub fn window(condition: &Condition) -> i64 {
    match &condition.kind {
        ConditionKind::And { left, right } | ConditionKind::Or { left, right } => window(left).max(window(right)),
        ConditionKind::Not { inner } => window(inner),
        ConditionKind::Exists { body, .. } => window(body),
        ConditionKind::Formerly { within, body } | ConditionKind::Previous { within, body } => {
            within.interval().seconds().saturating_add(window(body))
        }
        ConditionKind::Since { left, within, right } => {
            within.interval().seconds().saturating_add(window(left).max(window(right)))
        }
        ConditionKind::Comparison { left, right, .. } => window_of_term(left).max(window_of_term(right)),
        _ => 0,
    }
}

fn window_of_term(term: &Term) -> i64 {
    match term {
        Term::Agg(aggregate) => match &aggregate.kind {
            AggExprKind::Sum { body, .. } | AggExprKind::Count { body, .. } => window(body),
            _ => i64::MAX,
        },
        Term::Arith { left, right, .. } => window_of_term(left).max(window_of_term(right)),
        _ => 0,
    }
}

fn scale(condition: &mut Condition, ticks: i64) {
    if let ConditionKind::Formerly { within, .. } | ConditionKind::Previous { within, .. } | ConditionKind::Since { within, .. } =
        &mut condition.kind
    {
        let amount = within.interval().seconds().saturating_mul(ticks);
        *within = WithinSpec::Concrete(Interval {
            amount,
            unit: TimeUnit::Seconds,
        });
    }
    match &mut condition.kind {
        ConditionKind::And { left, right } | ConditionKind::Or { left, right } | ConditionKind::Since { left, right, .. } => {
            scale(left, ticks);
            scale(right, ticks);
        }
        ConditionKind::Not { inner } => scale(inner, ticks),
        ConditionKind::Formerly { body, .. } | ConditionKind::Previous { body, .. } | ConditionKind::Exists { body, .. } => {
            scale(body, ticks);
        }
        ConditionKind::Comparison { left, right, .. } => {
            scale_term(left, ticks);
            scale_term(right, ticks);
        }
        _ => {}
    }
}

fn scale_term(term: &mut Term, ticks: i64) {
    match term {
        Term::Agg(aggregate) => {
            if let AggExprKind::Sum { body, .. } | AggExprKind::Count { body, .. } = &mut aggregate.kind {
                scale(body, ticks);
            }
        }
        Term::Arith { left, right, .. } => {
            scale_term(left, ticks);
            scale_term(right, ticks);
        }
        _ => {}
    }
}
