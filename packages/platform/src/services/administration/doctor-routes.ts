import { modelVersion, type OperationName, operations } from '@agentplatform/contract';
import { type Solver, solverInstall } from '@agentplatform/policy-engine';
import type { DiskRoom } from '../../kernel/disk-room.ts';
import { type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import type { ProbeReport } from '../../kernel/sandbox/index.ts';
import type { PlaceReport } from '../../kernel/shared-places/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import type { Life } from '../../life.ts';
import type { PublicAddress } from './public-address.ts';

export interface DoctorDeps {
  /** Whether the operation of the contract is built. */
  serves(operation: OperationName): boolean;
  probe(): Promise<ProbeReport[]>;
  codeRuntimes(): Promise<string[]>;
  sharedPlaces(): PlaceReport[];
  life: Life;
  disk(): ReturnType<DiskRoom['report']>;
  database: Pick<Database, 'kind' | 'vector'>;
  publicAddress(): Promise<PublicAddress>;
  /** What policies are analysed with; undefined where the machine has none. */
  solver(): Promise<Pick<Solver, 'name'> | undefined>;
}

/**
 * What `agentcore doctor` asks a running server: which model of the API it speaks, which isolation this machine offers, what is missing for it and for shared places, for
 * which languages it has a base, how often the server had to be started again, what room the disk has, what the database lacks, by which address browsers reach it, and what policies are analysed with.
 */
export function doctorRoutes(deps: DoctorDeps): RouteSet {
  const { serves, probe, codeRuntimes, sharedPlaces, life, disk, database, publicAddress, solver } = deps;
  const ours = Object.values(operations).filter(({ plane }) => plane !== 'models');
  const rights = { action: 'agentplatform:Doctor', resource: '*' };
  async function answer() {
    const [providers, runtimes, address, found] = await Promise.all([
      probe(),
      codeRuntimes(),
      publicAddress(),
      solver(),
    ]);
    return {
      model: { version: modelVersion, operations: ours.length, served: ours.filter(({ name }) => serves(name)).length },
      providers,
      codeRuntimes: runtimes,
      sharedPlaces: sharedPlaces(),
      disk: disk(),
      database: databaseView(database),
      publicAddress: address,
      policyAnalysis: solverView(found),
      restarts: life.restarts,
      lastEnd: life.lastEnd,
    };
  }
  return {
    name: 'doctor',
    routes: [{ method: 'GET', url: '/_platform/doctor', credentials: SIGNED, ask: () => ({ rights, answer }) }],
  };
}

function databaseView({ kind, vector }: DoctorDeps['database']) {
  return {
    kind,
    missing: vector.available ? [] : [{ what: `search by meaning: ${vector.missing}`, remedy: vector.remedy }],
  };
}

function solverView(solver: Pick<Solver, 'name'> | undefined) {
  return {
    solver: solver?.name,
    missing: solver ? [] : [{ what: 'a solver: policies are type-checked, and not analysed', remedy: solverInstall }],
  };
}
