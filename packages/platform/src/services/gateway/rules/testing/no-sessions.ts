import type { RoutingDeps } from '../routing.ts';

/** Nobody keeps sessions: each goes where its hash says. */
export const noSessions: RoutingDeps['sticky'] = {
  nameOf: async (_session, { usual }) => usual,
  keep: async () => undefined,
  begin: async () => undefined,
};
