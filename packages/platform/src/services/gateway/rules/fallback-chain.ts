import { type control, ownErrors, ServiceError } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { UpstreamResponse } from '../../../kernel/http/index.ts';
import { ModelError } from '../../../kernel/models/index.ts';
import { gatewayErrors } from '../error-kinds.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import type { Route } from './routing.ts';

const failures = ownErrors(gatewayErrors);

export interface FallbackChainDeps {
  clock: Pick<Clock, 'after'>;
  breaker: CircuitBreaker;
}

type Step = Omit<control.FallbackTarget, 'targetFallback'>;
/** Sends the request once to that target; the signal aborts when the answer is not waited for any more. */
export type Attempt = (step: Pick<Step, 'targetName' | 'model'>, signal: AbortSignal) => Promise<UpstreamResponse>;

type Outcome = { answer: UpstreamResponse; error?: undefined } | { answer?: undefined; error: unknown };
/** What an attempt came to, as triggers name it. */
type Failure = control.FallbackError | number | undefined;

const USUAL: control.FallbackTriggers = {
  statusCodes: ['5XX'],
  errors: ['CONNECTION_ERROR', 'FIRST_BYTE_TIMEOUT', 'UNROUTABLE'],
};

/** Asks the targets of a route one after the other, each once at most, until one's answer does not ask for the next; never once any of an answer was sent on. */
export class FallbackChain {
  readonly #deps: FallbackChainDeps;

  constructor(deps: FallbackChainDeps) {
    this.#deps = deps;
  }

  /** The last answer where all fail. Rejects as the last attempt. `scope`: whose failures are counted together; `model`: what targets are asked for that the route gives none. */
  async run(
    { fallback, ...first }: Route,
    { scope, model }: { scope: string; model?: string },
    attempt: Attempt,
    signal: AbortSignal,
  ): Promise<UpstreamResponse> {
    if (!fallback) return attempt(first, signal);
    const { triggerOn, firstByteTimeoutMilliseconds, circuitBreaker, targetFallback } = fallback;
    const own = {
      ...first,
      ...(triggerOn && { triggerOn }),
      ...(firstByteTimeoutMilliseconds && { firstByteTimeoutMilliseconds }),
    };
    const steps: Step[] = [own, ...targetFallback];
    const guarded = circuitBreaker?.mode !== 'DISABLED';
    const { breaker } = this.#deps;
    for (const [i, step] of steps.entries()) {
      const last = i === steps.length - 1;
      const key = JSON.stringify([scope, step.targetName, step.model ?? model]);
      if (guarded && !last && breaker.isOpen(key)) continue;
      const outcome = await this.#try(step, attempt, signal);
      const failure = failureOf(outcome);
      const triggers = isIn(step.triggerOn ?? USUAL, failure);
      if (guarded && failure !== 'UNROUTABLE' && !signal.aborted) breaker.note(key, triggers);
      if (!triggers || last || signal.aborted) return settled(outcome);
      outcome.answer?.body.cancel(new Error('another target is asked'));
    }
    throw new Error('a chain without targets');
  }

  /** Until the first byte of the body is there, or there is none. */
  async #try(step: Step, attempt: Attempt, signal: AbortSignal): Promise<Outcome> {
    const ending = new AbortController();
    const { firstByteTimeoutMilliseconds: ms } = step;
    const late = Promise.withResolvers<never>();
    const callOff =
      ms === undefined
        ? () => undefined
        : this.#deps.clock.after(ms, () => {
            const reason = failures.GatewayTimeoutException(
              `The target ${step.targetName} sent nothing within ${ms} ms.`,
            );
            late.reject(reason);
            ending.abort(reason);
          });
    late.promise.catch(() => undefined);
    const asked = attempt(step, AbortSignal.any([signal, ending.signal]));
    try {
      const answer = await Promise.race([asked, late.promise]);
      await Promise.race([begun(answer), late.promise]);
      return { answer };
    } catch (error) {
      asked.then(({ body }) => body.cancel(new Error('it came too late'))).catch(() => undefined);
      return { error };
    } finally {
      callOff();
    }
  }
}

/** Once the first byte of the body is there, or nothing comes any more. */
function begun({ body }: UpstreamResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  body.watch(() => resolve());
  body.onSettled(resolve);
  return promise;
}

function settled({ answer, error }: Outcome): UpstreamResponse {
  if (answer) return answer;
  throw error;
}

function failureOf({ answer, error }: Outcome): Failure {
  if (answer) return answer.status;
  if (!(error instanceof ServiceError)) return 'CONNECTION_ERROR';
  if (error.cause instanceof ModelError) return failureOfModel(error.cause);
  if (error.code === 'GatewayTimeoutException') return 'FIRST_BYTE_TIMEOUT';
  if (error.code === 'ResourceNotFoundException') return 'UNROUTABLE';
  return error.code === 'BadGatewayException' ? 'CONNECTION_ERROR' : undefined;
}

/** What its provider answered with; that it gave no answer where there is none, or none that can be used. */
function failureOfModel({ status, refused }: ModelError): Failure {
  return status ?? (refused ? undefined : 'CONNECTION_ERROR');
}

function isIn({ statusCodes = [], errors = [] }: control.FallbackTriggers, failure: Failure): boolean {
  if (typeof failure !== 'number') return failure !== undefined && errors.includes(failure);
  return statusCodes.some((code) => (code.endsWith('XX') ? code[0] === String(failure)[0] : code === String(failure)));
}
