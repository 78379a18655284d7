import { join } from 'node:path';
import { runChild } from '../support/child.ts';

/** Bytes that a piece adds to a server. */
export interface PiecesFootprint {
  /** The policy engine with a hundred policies and a thousand decisions: resident memory of its process, of which that of Node is taken away. */
  policy: number;
  /** Each service of the list: what its code takes in the heap once it is loaded behind those before it. */
  services: Record<string, number>;
}

const CHILD_MS = 120_000;

/** Each in a process of its own, so that nothing else is counted. */
export async function measurePieces(): Promise<PiecesFootprint> {
  const said = (child: string): Promise<string> =>
    runChild(process.execPath, [join(import.meta.dirname, child)], CHILD_MS);
  return { policy: Number(await said('policy-child.ts')), services: JSON.parse(await said('pieces-child.ts')) };
}
