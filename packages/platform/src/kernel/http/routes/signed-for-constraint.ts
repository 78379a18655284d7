import type { IncomingMessage } from 'node:http';
import { isSignedFor } from '../../auth/index.ts';

/** A constraint of routes: requests that say they are signed for one of these services of AWS go to its routes, all others pass them by. */
export function signedForConstraint(services: ReadonlySet<string>) {
  return {
    name: 'signedFor',
    storage() {
      const routes = new Map<unknown, never>();
      return {
        get: (service: unknown) => routes.get(service) ?? null,
        set: (service: unknown, route: never) => void routes.set(service, route),
      };
    },
    deriveConstraint: (request: IncomingMessage) => [...services].find((service) => isSignedFor(service, request)),
    mustMatchWhenDerived: false,
  };
}
