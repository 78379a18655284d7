import { modelVersion, operations } from '@agentplatform/contract';
import type { FastifyPluginAsync } from 'fastify';
import type { DiskRoom } from '../../kernel/disk-room.ts';
import type { AdminGuard } from '../../kernel/http/admin-guard.ts';
import type { ProbeReport } from '../../kernel/sandbox/index.ts';
import type { PlaceReport } from '../../kernel/shared-places/index.ts';
import type { Life } from '../../life.ts';
import { notImplemented } from '../../not-implemented.ts';

export interface DoctorDeps {
  guard: AdminGuard;
  probe(): Promise<ProbeReport[]>;
  codeRuntimes(): Promise<string[]>;
  sharedPlaces(): PlaceReport[];
  life: Life;
  disk(): ReturnType<DiskRoom['report']>;
}

/**
 * What `agentcore doctor` asks a running server: which model of the API it speaks, which isolation this machine offers, what is missing for it and for shared places, for
 * which languages it has a base, how often the server had to be started again, and what room the disk has.
 */
export function doctorRoutes(deps: DoctorDeps): FastifyPluginAsync {
  const { guard, probe, codeRuntimes, sharedPlaces, life, disk } = deps;
  const all = Object.keys(operations).length;
  return async (app) => {
    app.get('/_platform/doctor', async (request) => {
      await guard(request, 'agentplatform:Doctor', () => '*');
      const [providers, runtimes] = await Promise.all([probe(), codeRuntimes()]);
      return {
        model: { version: modelVersion, operations: all, served: all - notImplemented.length },
        providers,
        codeRuntimes: runtimes,
        sharedPlaces: sharedPlaces(),
        disk: disk(),
        restarts: life.restarts,
        lastEnd: life.lastEnd,
      };
    });
  };
}
