import { Worker } from 'node:worker_threads';
import type { Answered, Asked } from './engine-worker.ts';
import {
  type Decision,
  type DecisionRequest,
  type Diagnostic,
  defaultLimits,
  type HistoryEvent,
  type Limits,
  type LoadedSet,
  type PolicySetSource,
  type Principal,
} from './types.ts';

declare global {
  interface JSON {
    /** A number as it is written; the types of the language do not have it yet. */
    rawJSON(text: string): unknown;
  }
}

export interface EngineOptions {
  limits?: Partial<Limits>;
  /** A call that takes longer ends the worker; it and those behind it deny. */
  callMs?: number;
  /** Memory over which the instance is made anew. */
  memoryBytes?: number;
}

interface Waiting {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

const heldSessions = 2_000;

/** So begins every error of a decision that the engine has not made. */
export const ENGINE_FAILED = 'the policy engine ';

/** The policy engine of a server, in a worker of its own. Content never makes it throw: what fails denies. */
export class PolicyEngine {
  readonly #limits: Limits;
  readonly #callMs: number;
  readonly #memoryBytes: number;
  readonly #sources = new Map<string, string>();
  readonly #waiting = new Map<number, Waiting>();
  /** What the engine holds of each session, as last heard; the engine itself knows, and says so where this is wrong. */
  readonly #held = new Map<string, number>();
  #worker: Worker | undefined;
  #watch: NodeJS.Timeout | undefined;
  #number = 0;
  #closed = false;

  constructor(options: EngineOptions = {}) {
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#callMs = options.callMs ?? 10_000;
    this.#memoryBytes = options.memoryBytes ?? 512 * 1024 * 1024;
  }

  /** Parses and type-checks a set once and keeps it under its id, in place of the one before. */
  async load(set: PolicySetSource): Promise<LoadedSet> {
    const text = JSON.stringify({ op: 'load', ...set, limits: this.#limits });
    this.#sources.set(set.id, text);
    try {
      const report = (await this.#ask('load', set.id, text)) as Partial<LoadedSet>;
      return { ...nothing, ...report, id: set.id };
    } catch (error) {
      this.#sources.delete(set.id);
      return { ...nothing, id: set.id, problems: [problem(error)] };
    }
  }

  /** What a set was loaded from. */
  source(set: string): PolicySetSource | undefined {
    const text = this.#sources.get(set);
    return text === undefined ? undefined : (JSON.parse(text) as PolicySetSource);
  }

  async unload(set: string): Promise<void> {
    this.#sources.delete(set);
    await this.#ask('unload', set, JSON.stringify({ op: 'unload', set })).catch(() => undefined);
  }

  async decide(set: string, request: DecisionRequest): Promise<Decision> {
    try {
      return await this.#decide(set, request);
    } catch (error) {
      return { decision: 'DENY', determining: [], errors: [error instanceof Error ? error.message : String(error)] };
    }
  }

  async #decide(set: string, request: DecisionRequest): Promise<Decision> {
    const { principal, action, resource, input, output, now, scores, session } = request;
    const fixed = {
      op: 'decide',
      set,
      principal,
      action,
      resource,
      input: input ?? {},
      output,
      now: now.getTime(),
      scores,
    };
    if (!session) {
      const history = request.history?.map(wireEvent);
      return (await this.#ask('decide', set, JSON.stringify({ ...fixed, history }, exact))) as Decision;
    }
    const key = JSON.stringify([set, session.id]);
    let after = this.#held.get(key) ?? 0;
    // A guess that is wrong is told what is held; that can change under it only when the engine was made anew.
    for (let tries = 0; tries < 4; tries += 1) {
      const history = (await session.events(after)).map(wireEvent);
      const text = JSON.stringify(
        { ...fixed, history, session: { id: session.id, after, sequence: session.sequence } },
        exact,
      );
      const answer = (await this.#ask('decide', set, text)) as Decision & { held?: number };
      if (answer.held === undefined) {
        this.#hold(key, session.sequence);
        return answer;
      }
      after = answer.held;
    }
    throw new Error('the history of the session changed while it was read');
  }

  #hold(key: string, sequence: number): void {
    this.#held.delete(key);
    this.#held.set(key, sequence);
    for (const oldest of this.#held.keys()) {
      if (this.#held.size <= heldSessions) return;
      this.#held.delete(oldest);
    }
  }

  /** Lets a session's events go, as when the transaction that had them was rolled back; the next call hands them over anew. */
  async forget(set: string, session: string): Promise<void> {
    this.#held.delete(JSON.stringify([set, session]));
    await this.#ask('forget', set, JSON.stringify({ op: 'forget', set, session })).catch(() => undefined);
  }

  /** The tools that some call could be permitted for. It rests on the set, the principal with its tags, and the gateway. */
  async permits(set: string, principal: Principal, resource: string, actions: string[]): Promise<Set<string>> {
    try {
      const text = JSON.stringify({ op: 'permits', set, principal, resource, actions });
      return new Set((await this.#ask('permits', set, text)) as string[]);
    } catch {
      return new Set();
    }
  }

  /** One call of the module as it is, for the corpora and the analysis. */
  async ask(op: string, body: object): Promise<unknown> {
    return await this.#ask(op, undefined, JSON.stringify({ op, ...body }));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#end('the policy engine is closed');
  }

  async #ask(op: string, set: string | undefined, text: string): Promise<unknown> {
    if (this.#closed) throw new Error('the policy engine is closed');
    const worker = this.#running();
    const number = ++this.#number;
    const answer = new Promise<unknown>((resolve, reject) => this.#waiting.set(number, { resolve, reject }));
    worker.postMessage({ number, op, set, text } satisfies Asked);
    this.#watched();
    return await answer;
  }

  #running(): Worker {
    if (this.#worker) return this.#worker;
    const worker = new Worker(new URL('./engine-worker.ts', import.meta.url), {
      workerData: { memoryBytes: this.#memoryBytes },
      execArgv: [],
    });
    worker.unref();
    worker.on('message', (answer: Answered) => this.#answered(answer));
    const gone = (error?: unknown) => {
      if (this.#worker === worker) void this.#end(error instanceof Error ? error.message : 'the policy engine ended');
    };
    worker.on('error', gone);
    worker.on('exit', () => gone());
    this.#worker = worker;
    for (const [set, text] of this.#sources) worker.postMessage({ number: 0, op: 'load', set, text } satisfies Asked);
    return worker;
  }

  #answered(answer: Answered): void {
    const waiting = this.#waiting.get(answer.number);
    this.#waiting.delete(answer.number);
    this.#watched();
    if (!waiting) return;
    if ('failed' in answer) {
      waiting.reject(new Error(`the policy engine failed: ${answer.failed}`));
      return;
    }
    const parsed = JSON.parse(answer.text) as { ok: unknown } | { error: string };
    if ('error' in parsed) waiting.reject(new Error(`the policy engine refused: ${parsed.error}`));
    else waiting.resolve(parsed.ok);
  }

  /** Each answer starts the clock anew: it runs for the call that the worker is at. */
  #watched(): void {
    if (this.#waiting.size === 0) {
      clearTimeout(this.#watch);
      this.#watch = undefined;
      this.#worker?.unref();
      return;
    }
    this.#worker?.ref();
    if (this.#watch) this.#watch.refresh();
    else
      this.#watch = setTimeout(
        () => void this.#end(`the policy engine gave no answer in ${this.#callMs} ms`),
        this.#callMs,
      );
  }

  async #end(reason: string): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    clearTimeout(this.#watch);
    this.#watch = undefined;
    this.#held.clear();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(new Error(reason));
    await worker?.terminate();
  }
}

const nothing = {
  loaded: false,
  problems: [],
  broken: [],
  closed: null,
  temporal: false,
  windowSeconds: 0,
  guardrails: [],
  actions: [],
} satisfies Omit<LoadedSet, 'id'>;

function problem(error: unknown): Diagnostic {
  const message = error instanceof Error ? error.message : String(error);
  return { policyId: null, severity: 'error', message, line: null, column: null, excerpt: null, suggestion: null };
}

function wireEvent(event: HistoryEvent) {
  return { ...event, time: event.time.getTime() };
}

/** An integer that a double cannot tell from its neighbours is no longer what the caller wrote: it goes as what no integer is. */
function exact(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return JSON.rawJSON(value.toString());
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value))
    return JSON.rawJSON(`${value}.5`);
  return value;
}
