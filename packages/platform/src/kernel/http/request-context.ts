import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Principal } from '../auth/index.ts';
import type { RequestContext } from '../service.ts';
import type { Span } from '../telemetry/index.ts';
import { originOf } from './origin-of.ts';
import { type Exchange, sourceIpOf } from './stages.ts';

interface Parts {
  requestId: string;
  principal: Principal;
  region: string;
  headers: IncomingHttpHeaders;
  signedHeaders: ReadonlySet<string> | undefined;
  res: ServerResponse;
  forwarded: Exchange['forwarded'];
  span: Span;
  log: Logger;
  require(action: string, resource: string): Promise<void>;
  holdBody(bytes: number): void;
}

/** What a handler knows of its request. Signal and logger are made when asked for: the hot path needs neither. */
export class HttpRequestContext implements RequestContext {
  readonly requestId: string;
  readonly principal: Principal;
  readonly region: string;
  readonly headers: IncomingHttpHeaders;
  readonly signedHeaders: ReadonlySet<string> | undefined;
  readonly span: Span;
  readonly #parts: Parts;
  #signal: AbortSignal | undefined;
  #log: Logger | undefined;

  constructor(parts: Parts) {
    this.requestId = parts.requestId;
    this.principal = parts.principal;
    this.region = parts.region;
    this.headers = parts.headers;
    this.signedHeaders = parts.signedHeaders;
    this.span = parts.span;
    this.#parts = parts;
  }

  get accountId(): string {
    return this.principal.accountId;
  }

  get origin(): string {
    return originOf({ headers: this.headers, socket: this.#parts.res.socket });
  }

  get sourceIp(): string | undefined {
    const { res, forwarded } = this.#parts;
    return sourceIpOf({ req: res.req, forwarded });
  }

  get log(): Logger {
    this.#log ??= this.#parts.log.child({ requestId: this.requestId });
    return this.#log;
  }

  get signal(): AbortSignal {
    this.#signal ??= closeSignal(this.#parts.res);
    return this.#signal;
  }

  onGone(run: () => void): () => void {
    const { res } = this.#parts;
    const onClose = (): void => {
      if (!res.writableFinished) run();
    };
    if (res.destroyed) onClose();
    else res.once('close', onClose);
    return () => res.removeListener('close', onClose);
  }

  require(action: string, resource: string): Promise<void> {
    return this.#parts.require(action, resource);
  }

  holdBody(bytes: number): void {
    this.#parts.holdBody(bytes);
  }
}

/** Aborts when the client goes away before it has its answer. */
export function closeSignal(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => {
    if (!res.writableFinished) controller.abort(new Error('the client closed the connection'));
  };
  if (res.destroyed) abort();
  else res.once('close', abort);
  return controller.signal;
}
