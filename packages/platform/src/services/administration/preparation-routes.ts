import { type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import type { Preparations } from '../../kernel/preparations.ts';

/** What the platform prepares in the background and how far it is; `agentcore wait` asks until all of it is ready. */
export function preparationRoutes(preparations: Pick<Preparations, 'list'>): RouteSet {
  const rights = { action: 'agentplatform:Doctor', resource: '*' };
  const answer = () => ({ preparations: preparations.list() });
  return {
    name: 'preparations',
    routes: [{ method: 'GET', url: '/_platform/preparations', credentials: SIGNED, ask: () => ({ rights, answer }) }],
  };
}
