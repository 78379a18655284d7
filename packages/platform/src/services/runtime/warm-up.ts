import { connectTo, disconnect, type SessionPlan, StartFailure } from '../../kernel/sessions/index.ts';
import { untilAborted } from '../../kernel/until-aborted.ts';
import { routeOf } from './protocols.ts';
import type { RuntimeVersion } from './runtime.ts';

/** How long a hook may take (model: `BuildLifecycleHooks.warmup`). */
const WARM_UP_MS = 120_000;
/** How much of what a hook says is shown. */
const ANSWER_CHARACTERS = 2048;

/** Where a version's warm-up hook is; undefined when it has none. */
export function warmUpRoute(
  version: Pick<RuntimeVersion, 'protocol' | 'definition'>,
): { port: number; path: string } | undefined {
  const action = version.definition.hooksConfiguration?.build?.warmup?.action.httpPost;
  return action && { port: action.port ?? routeOf(version).port, path: action.path };
}

/** Asks the hook once and waits for its 2xx, so that what it loads is loaded before a session comes; undefined for a version without hook. */
export function warmUpOf(version: Pick<RuntimeVersion, 'protocol' | 'definition'>): SessionPlan['warmUp'] {
  const route = warmUpRoute(version);
  if (!route) return undefined;
  return async (sandbox, signal) => {
    const { port, path } = route;
    const connection = connectTo(sandbox, port);
    const either = AbortSignal.any([signal, AbortSignal.timeout(WARM_UP_MS)]);
    const failure = (what: string, cause?: unknown) =>
      StartFailure.cold(sandbox, `POST ${path} on port ${port} ${what}`, cause);
    try {
      const answer = connection.request({ method: 'POST', path, headersTimeout: WARM_UP_MS, signal: either });
      const { statusCode, body } = await untilAborted(answer, either);
      const said = (await untilAborted(body.text(), either)).slice(0, ANSWER_CHARACTERS);
      if (statusCode < 200 || statusCode > 299) throw await failure(`answered ${statusCode}${said ? `: ${said}` : ''}`);
    } catch (error) {
      if (error instanceof StartFailure) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw await failure(either.aborted ? `did not answer within ${WARM_UP_MS / 1000} s` : `failed: ${why}`, error);
    } finally {
      disconnect(connection);
    }
  };
}
