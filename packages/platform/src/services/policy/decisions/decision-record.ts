import type { Sink } from '../../../kernel/journal/index.ts';
import { addMetered, counted } from '../../../kernel/metering/index.ts';
import { list, number, object, oneOf, record, stored, text } from '../../../kernel/stored-shape.ts';
import type { PolicyPrincipal } from './policy-principal.ts';

/** One decision, as the journal carries it and the table `policy_decisions` keeps it. */
export interface DecisionRecord {
  id: string;
  requestId: string;
  /** Milliseconds since the epoch. */
  at: number;
  accountId: string;
  gatewayArn: string;
  engineArn: string;
  mode: 'LOG_ONLY' | 'ENFORCE';
  principal: PolicyPrincipal;
  action: string;
  /** Of the request, or of what a tool answered. */
  phase: 'request' | 'response';
  decision: 'ALLOW' | 'DENY';
  /** What it would be if the policies that are LOG_ONLY decided, too. */
  wouldBe: 'ALLOW' | 'DENY';
  /** Ids of the policies that the decision rests on. */
  policies: readonly string[];
  /** Ids of LOG_ONLY policies that matched. */
  logOnly: readonly string[];
  errors: readonly string[];
  /** SHA-256 of the input as canonical JSON. */
  digest: string;
  sessionId?: string | undefined;
  durationUs: number;
}

const storedDecision = object<DecisionRecord, Pick<DecisionRecord, 'sessionId'>>(
  {
    ...{ id: text, requestId: text, at: number, accountId: text, gatewayArn: text, engineArn: text },
    mode: oneOf('LOG_ONLY', 'ENFORCE'),
    principal: object<PolicyPrincipal>({ type: oneOf('OAuthUser', 'IamEntity'), id: text, tags: record(text) }),
    action: text,
    phase: oneOf('request', 'response'),
    ...{ decision: oneOf('ALLOW', 'DENY'), wouldBe: oneOf('ALLOW', 'DENY') },
    ...{ policies: list(text), logOnly: list(text), errors: list(text), digest: text, durationUs: number },
  },
  { sessionId: text },
);

/** Takes decisions from the journal into the table. */
export const decisionSink: Sink<DecisionRecord> = {
  parse: stored(storedDecision).parse,
  async apply(tx, records) {
    await tx.execute(ADD, [JSON.stringify(records.map(({ data }) => rowOf(data)))]);
    await addMetered(
      tx,
      records.map(({ data }) =>
        counted('policy-decisions', { ...data, resourceArn: data.engineArn, userId: data.principal.id }, data),
      ),
    );
  },
};

function rowOf({ principal, ...record }: DecisionRecord): object {
  return { ...record, principalType: principal.type, principal: principal.id, tags: principal.tags };
}

const ADD = `
  INSERT INTO policy_decisions (id, request_id, at, account_id, gateway_arn, engine_arn, mode, principal_type, principal, tags, action,
    phase, decision, would_be, policies, log_only, errors, digest, session_id, duration_us)
  SELECT id, "requestId", at, "accountId", "gatewayArn", "engineArn", mode, "principalType", principal, tags, action, phase, decision,
    "wouldBe", policies, "logOnly", errors, digest, "sessionId", "durationUs"
  FROM json_to_recordset($1::json) AS r(id text, "requestId" text, at bigint, "accountId" text, "gatewayArn" text, "engineArn" text,
    mode text, "principalType" text, principal text, tags jsonb, action text, phase text, decision text, "wouldBe" text, policies jsonb,
    "logOnly" jsonb, errors jsonb, digest text, "sessionId" text, "durationUs" bigint)`;
