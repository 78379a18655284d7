/** A set of policies of one policy engine, with the schema made from the gateway's tools. */
export interface PolicySetSource {
  id: string;
  /** Cedar schema text, as `toolSchema` makes it. */
  schema: string;
  policies: PolicySource[];
}

export interface PolicySource {
  id: string;
  text: string;
  language: 'cedar' | 'dogwood';
  mode: 'ACTIVE' | 'LOG_ONLY';
}

/** What is wrong with a policy or a schema, and where. */
export interface Diagnostic {
  /** None: the set or its schema. */
  policyId: string | null;
  severity: 'error' | 'warning';
  message: string;
  /** From 1, as is the column. */
  line: number | null;
  column: number | null;
  /** The line, and a caret below what is meant. */
  excerpt: string | null;
  suggestion: string | null;
}

export interface LoadedSet {
  id: string;
  /** False: nothing of the set is kept, and every decision of it denies. */
  loaded: boolean;
  problems: Diagnostic[];
  /** The policies that do not parse or type-check; they take no part. */
  broken: string[];
  /** Why everything is denied: a broken policy might have been one that forbids. */
  closed: string | null;
  temporal: boolean;
  /** How far the temporal conditions look back. */
  windowSeconds: number;
  guardrails: GuardrailNeed[];
  /** The tools that the schema knows. */
  actions: string[];
}

/** A score that a policy asks for; `decide` takes it under `id` in `scores`. */
export interface GuardrailNeed {
  id: string;
  /** `BedrockGuardrails::ContentFilter`, `…::PromptAttack` or `…::SensitiveInformation`. */
  name: string;
  /** The content and the categories: a `field` is a path from `context`. */
  args: GuardrailArgument[];
  methods: ('maxConfidenceScore' | 'minConfidenceScore' | 'count' | 'categories')[];
  /** The tools whose calls need it. */
  actions: string[];
}

export type GuardrailArgument = string | number | boolean | { field: string[] } | GuardrailArgument[];

/** What a guardrail said: decimals are marked, as JSON numbers are integers here. */
export type Score = string | number | { decimal: string } | { [name: string]: Score } | Score[];

export interface Principal {
  type: 'OAuthUser' | 'IamEntity';
  id: string;
  tags?: Record<string, string>;
}

export interface DecisionRequest {
  principal: Principal;
  /** `<Target>___<tool>` */
  action: string;
  /** The gateway's ARN. */
  resource: string;
  input: unknown;
  output?: unknown;
  now: Date;
  /** The session's events before this call, oldest first; or `session`, whose events the engine keeps. */
  history?: HistoryEvent[];
  session?: SessionHistory;
  /** By `GuardrailNeed.id`. */
  scores?: Record<string, Score>;
}

/** A session whose events stay in the engine, so that a call hands over only the new ones. */
export interface SessionHistory {
  id: string;
  /** The number that this request's own event has in the session; greater than those before. */
  sequence: number;
  /** The events with greater numbers than `after` and less than `sequence`, oldest first; those beyond the window may be left out. */
  events(after: number): HistoryEvent[] | Promise<HistoryEvent[]>;
}

export interface HistoryEvent {
  kind: 'request' | 'response' | 'error';
  action: string;
  time: Date;
  principal: { type: Principal['type']; id: string };
  resource: string;
  input: unknown;
  output?: unknown;
  requestId?: string;
  sessionId?: string;
}

export interface Decision {
  decision: 'ALLOW' | 'DENY';
  /** The policies that made it so; none where nothing permits. */
  determining: string[];
  errors: string[];
  /** What would have been, were the LOG_ONLY policies active; present where it differs. */
  logOnly?: { decision: 'ALLOW' | 'DENY'; determining: string[] };
}

/** How much one set may have; the engine refuses more with the number. */
export interface Limits {
  policies: number;
  policyBytes: number;
  totalBytes: number;
  schemaBytes: number;
}

export const defaultLimits: Limits = {
  policies: 10_000,
  policyBytes: 10 * 1024,
  totalBytes: 8 * 1024 * 1024,
  schemaBytes: 400 * 1024,
};
