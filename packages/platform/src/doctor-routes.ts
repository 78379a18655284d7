import type { FastifyPluginAsync } from 'fastify';
import type { AdminGuard } from './kernel/http/admin-guard.ts';
import type { ProbeReport } from './kernel/sandbox/index.ts';
import type { PlaceReport } from './kernel/shared-places/index.ts';

export interface DoctorDeps {
  guard: AdminGuard;
  probe(): Promise<ProbeReport[]>;
  codeRuntimes(): Promise<string[]>;
  sharedPlaces(): PlaceReport[];
}

/** What `agentcore doctor` asks a running server: which isolation this machine offers, what is missing for it and for shared places, and for which languages it has a base. */
export function doctorRoutes({ guard, probe, codeRuntimes, sharedPlaces }: DoctorDeps): FastifyPluginAsync {
  return async (app) => {
    app.get('/_platform/doctor', async (request) => {
      await guard(request, 'agentplatform:Doctor', () => '*');
      const [providers, runtimes] = await Promise.all([probe(), codeRuntimes()]);
      return { providers, codeRuntimes: runtimes, sharedPlaces: sharedPlaces() };
    });
  };
}
