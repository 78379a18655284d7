import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** What an entrypoint knows of the request that it serves. */
export interface InvocationContext {
  /** The caller's runtimeSessionId; undefined when the agent is called without the platform and without the header. */
  readonly sessionId: string | undefined;
  /** The platform's id of this request, or a random one. */
  readonly requestId: string;
  /** The end user that the caller named, if it named one. */
  readonly userId: string | undefined;
  /** Headers of the caller (lower-case names) that the platform let through, without those of the transport and without tokens below. */
  readonly headers: Readonly<Record<string, string>>;
  /** Token with which this agent can ask Identity for credentials. */
  readonly workloadAccessToken: string | undefined;
  /** Where an OAuth consent should return to. */
  readonly oauth2CallbackUrl: string | undefined;
  /** Aborts when the caller goes away or the server closes; hand it to `fetch` and to your model client. */
  readonly signal: AbortSignal;
}

const prefix = 'x-amzn-bedrock-agentcore-runtime-';
const own = {
  session: `${prefix}session-id`,
  request: `${prefix}request-id`,
  user: `${prefix}user-id`,
  token: 'x-amz-bedrock-agentcore-identity-wat',
  legacyToken: 'workloadaccesstoken',
  callback: 'oauth2callbackurl',
} as const;

const hidden = new Set<string>([
  ...Object.values(own),
  'host',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'content-length',
]);

/** Reads the context from the headers that reach a container (docs: wire facts, section Runtime). */
export function contextFrom(incoming: IncomingHttpHeaders, signal: AbortSignal): InvocationContext {
  const value = (name: string): string | undefined => {
    const found = incoming[name];
    return (Array.isArray(found) ? found.join(', ') : found) || undefined;
  };
  const headers: Record<string, string> = {};
  for (const name of Object.keys(incoming)) {
    const text = hidden.has(name) ? undefined : value(name);
    if (text !== undefined) headers[name] = text;
  }
  return {
    sessionId: value(own.session),
    requestId: value(own.request) ?? randomUUID(),
    userId: value(own.user),
    headers,
    workloadAccessToken: value(own.token) ?? value(own.legacyToken),
    oauth2CallbackUrl: value(own.callback),
    signal,
  };
}

const current = new AsyncLocalStorage<InvocationContext>();

/** The context of the invocation that the caller runs in, however deep; undefined outside of one. */
export function getContext(): InvocationContext | undefined {
  return current.getStore();
}

/** Runs `work` so that `getContext` finds `context` in it and in everything that it awaits. */
export function runInContext<Result>(context: InvocationContext, work: () => Result): Result {
  return current.run(context, work);
}
