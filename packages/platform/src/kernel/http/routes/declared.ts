import type { FastifyInstance } from 'fastify';
import type { Credentials } from './route.ts';

/** What a handler serves. */
interface Declaration {
  /** Name of the set of routes that it belongs to, or of what hands requests through. */
  set: string;
  /** Serves somebody without credentials. */
  open: boolean;
  /** How those who ask prove who they are, where they have to. */
  credentials?: Credentials | undefined;
}

const declarations = new WeakMap<object, Declaration>();

/** Marks the handler of a declared route, which goes through the stages. */
export function declare<Handler extends object>(declaration: Declaration, handler: Handler): Handler {
  declarations.set(handler, declaration);
  return handler;
}

/** What was declared of a handler; undefined for one that does not go through the stages. */
export function declarationOf(handler: object): Declaration | undefined {
  return declarations.get(handler);
}

/** From here on `app` throws at every route but declared ones: what would be served past the stages is not served at all. */
export function onlyDeclared(app: FastifyInstance): void {
  app.addHook('onRoute', ({ method, url, handler }) => {
    if (!declarationOf(handler))
      throw new Error(`${method} ${url} is not a declared route: nobody would be asked who he is and whether he may`);
  });
}
