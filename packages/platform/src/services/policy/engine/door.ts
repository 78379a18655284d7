/** What decides: the interface of the package policy-engine, as far as it is used here. */
export interface PolicyEvaluator {
  /** Parses and type-checks once; kept by id. */
  load(set: PolicySetSource): Promise<LoadedSet>;
  /** Never rejects for what a policy or a request says: a failure is DENY with errors. */
  decide(setId: string, request: DecisionRequest): Promise<Decision>;
  /** Which of these actions could be permitted for some input. */
  permits(setId: string, principal: EnginePrincipal, resource: string, actions: string[]): Promise<Set<string>>;
  unload(setId: string): Promise<void>;
  /** Lets the events of a session go that the engine keeps. */
  forget(setId: string, session: string): Promise<void>;
  close(): Promise<void>;
}

export interface PolicySetSource {
  id: string;
  schema: string;
  policies: { id: string; text: string; language: 'cedar' | 'dogwood'; mode: 'ACTIVE' | 'LOG_ONLY' }[];
}

export interface Diagnostic {
  policyId: string | null;
  severity: 'error' | 'warning';
  message: string;
  line: number | null;
  column: number | null;
  excerpt: string | null;
  suggestion: string | null;
}

export interface LoadedSet {
  id: string;
  loaded: boolean;
  problems: Diagnostic[];
  broken: string[];
  closed: string | null;
  temporal: boolean;
  windowSeconds: number;
  guardrails: GuardrailNeed[];
  actions: string[];
}

export interface GuardrailNeed {
  id: string;
  name: string;
  args: GuardrailArgument[];
  methods: ('maxConfidenceScore' | 'minConfidenceScore' | 'count' | 'categories')[];
  actions: string[];
}

export type GuardrailArgument = string | number | boolean | { field: string[] } | GuardrailArgument[];
export type Score = string | number | { decimal: string } | { [name: string]: Score } | Score[];

export interface EnginePrincipal {
  type: 'OAuthUser' | 'IamEntity';
  id: string;
  tags?: Record<string, string>;
}

export interface HistoryEvent {
  kind: 'request' | 'response' | 'error';
  action: string;
  time: Date;
  principal: { type: 'OAuthUser' | 'IamEntity'; id: string };
  resource: string;
  input: unknown;
  output?: unknown;
}

export interface SessionHistory {
  id: string;
  sequence: number;
  events(after: number): HistoryEvent[] | Promise<HistoryEvent[]>;
}

export interface DecisionRequest {
  principal: EnginePrincipal;
  action: string;
  resource: string;
  input: unknown;
  output?: unknown;
  now: Date;
  history?: HistoryEvent[];
  session?: SessionHistory;
  scores?: Record<string, Score>;
}

export interface Decision {
  decision: 'ALLOW' | 'DENY';
  determining: string[];
  errors: string[];
  logOnly?: { decision: 'ALLOW' | 'DENY'; determining: string[] };
}
