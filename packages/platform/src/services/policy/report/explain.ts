import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/storage/index.ts';
import { list, record, text } from '../../../kernel/stored-shape.ts';
import { digestOf } from '../decisions/decisions.ts';
import type { PolicyGateways } from '../decisions/policy-gateway.ts';
import type { PolicyPrincipal } from '../decisions/policy-principal.ts';
import { brokenFor } from '../decisions/policy-set.ts';
import type { PolicySets } from '../decisions/policy-sets.ts';
import type { Decision, PolicyEvaluator } from '../engine/door.ts';
import type { Engine } from '../engines/policy-engine.ts';
import type { GuardrailScores } from '../guardrails/guardrail-scores.ts';
import type { PolicySessions } from '../sessions/policy-sessions.ts';

export interface ExplainDeps {
  database: Database;
  clock: Clock;
  evaluator: PolicyEvaluator;
  sets: Pick<PolicySets, 'use'>;
  sessions: Pick<PolicySessions, 'before'>;
  scores: Pick<GuardrailScores, 'of'>;
  gateways: PolicyGateways;
}

/** A decision that was made. If its input is given, also the decision by the present policies. */
export interface Explained extends Row {
  /** Whether the given input is the one of the decision. Absent if no input was given. */
  sameInput?: boolean;
  now?: Decision | undefined;
  /** Why it was not decided again. */
  notReplayed?: string;
}

interface Row {
  requestId: string;
  at: number;
  gatewayArn: string;
  mode: string;
  principalType: PolicyPrincipal['type'];
  principal: string;
  tags: Record<string, string>;
  action: string;
  phase: string;
  decision: string;
  wouldBe: string;
  policies: string[];
  logOnly: string[];
  errors: string[];
  digest: string;
  sessionId: string | null;
  durationUs: number;
}

type Kept = Omit<Row, 'tags' | 'policies' | 'logOnly' | 'errors'> & {
  [Column in 'tags' | 'policies' | 'logOnly' | 'errors']: unknown;
};

function rowOf(kept: Kept): Row {
  const names = (column: 'policies' | 'logOnly' | 'errors'): string[] => list(text)(kept[column], column);
  const lists = { policies: names('policies'), logOnly: names('logOnly'), errors: names('errors') };
  return { ...kept, ...lists, tags: record(text)(kept.tags, 'tags') };
}

/** Longest look at a decision again. */
const LONGEST_MS = 20_000;

/** The decisions on one request. With its input each is made again, in its session as it was then, by the policies of now. */
export async function explain(
  engine: Engine,
  { requestId, input }: { requestId: string; input: unknown },
  deps: ExplainDeps,
): Promise<Explained[]> {
  const rows = (await deps.database.query<Kept>(READ, [engine.arn, requestId])).map(rowOf);
  return Promise.all(rows.map((row) => (input === undefined ? row : replayed(engine, row, input, deps))));
}

async function replayed(engine: Engine, row: Row, input: unknown, deps: ExplainDeps): Promise<Explained> {
  const sameInput = digestOf(input) === row.digest;
  if (!sameInput) return { ...row, sameInput, notReplayed: 'This is not the input that was decided on.' };
  if (row.phase !== 'request') return { ...row, sameInput, notReplayed: 'What the tool answered is not kept.' };
  const gateway = await deps.gateways.find(row.gatewayArn, engine.arn);
  if (!gateway) return { ...row, sameInput, notReplayed: 'The gateway is gone.' };
  const late = new AbortController();
  const cancel = deps.clock.after(LONGEST_MS, () => late.abort(new Error('it took too long')));
  try {
    const { action, principalType: type, principal: id, tags, at, sessionId } = row;
    const now = await deps.sets.use(gateway, async ({ set }): Promise<Decision> => {
      const broken = brokenFor(set, action).map((one) => one.id);
      if (broken.length > 0) return { decision: 'DENY', determining: broken, errors: ['These do not fit the tools.'] };
      const scores = await deps.scores.of(
        set.loaded,
        { action, requestId: row.requestId, signal: late.signal },
        { input },
      );
      const history = sessionId === null ? [] : await deps.sessions.before(engine.arn, sessionId, at, deps.database);
      const asked = { principal: { type, id, tags }, action, resource: gateway.arn, input, now: new Date(at), scores };
      return deps.evaluator.decide(set.loaded.id, { ...asked, ...(set.loaded.temporal && { history }) });
    });
    return { ...row, sameInput, now };
  } finally {
    cancel();
  }
}

const READ = `
  SELECT request_id AS "requestId", at, gateway_arn AS "gatewayArn", mode, principal_type AS "principalType", principal, tags, action, phase,
    decision, would_be AS "wouldBe", policies, log_only AS "logOnly", errors, digest, session_id AS "sessionId",
    duration_us AS "durationUs"
  FROM policy_decisions WHERE engine_arn = $1 AND request_id = $2 ORDER BY at LIMIT 100`;
