/** The thread that runs the embedded database: WebAssembly computes synchronously, and requests must not wait for it. */
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { PGlite } from '@electric-sql/pglite';
import { CHANGE_NOTED } from './changes.ts';
import type { RunResult } from './driver.ts';
import { openPglite } from './pglite-open.ts';
import type { PgliteFailure, PgliteReply, PgliteRequest, PgliteWorkerData } from './pglite-protocol.ts';

const NICENESS = 10;

const data: PgliteWorkerData = workerData;
const reply = (message: PgliteReply): void => parentPort?.postMessage(message);

function failureOf(error: unknown): PgliteFailure {
  const failure: PgliteFailure = { message: error instanceof Error ? error.message : String(error) };
  if (typeof error !== 'object' || error === null) return failure;
  if ('code' in error && typeof error.code === 'string') failure.code = error.code;
  if ('constraint' in error && typeof error.constraint === 'string') failure.constraint = error.constraint;
  return failure;
}

/** PostgreSQL reports every failure it survives with a severity; anything else means that the engine stopped. */
function isSurvivable(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('severity' in error)) return false;
  return error.severity === 'ERROR';
}

async function perform(database: PGlite, request: PgliteRequest): Promise<RunResult> {
  if (request.kind === 'close') {
    await database.close();
    return { rows: [], affected: 0, noted: false };
  }
  if (request.begin) await database.exec('BEGIN');
  let noted = false;
  const onNotice = ({ code }: { code: string | undefined }): void => {
    noted ||= code === CHANGE_NOTED;
  };
  if (request.kind === 'exec') {
    const results = await database.exec(request.sql, { onNotice });
    const affected = results.reduce((sum, result) => sum + (result.affectedRows ?? 0), 0);
    return { rows: results.flatMap((result) => result.rows), affected, noted };
  }
  const result = await database.query(request.sql, request.params, { onNotice });
  return { rows: result.rows, affected: result.affectedRows ?? 0, noted };
}

/** Requests go first where processors are scarce: no live invocation waits for the database, and it computes in bursts. */
function giveWay(): void {
  try {
    // Read synchronously, so in this thread; Linux knows priorities of threads, other systems go without.
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), NICENESS);
  } catch {}
}

async function main(): Promise<void> {
  const database = await openPglite(data.directory);
  // From here on: nothing is served before it is open.
  giveWay();
  let last: Promise<void> = Promise.resolve();
  parentPort?.on('message', (request: PgliteRequest) => {
    last = last.then(async () => {
      try {
        reply({ kind: 'result', id: request.id, result: await perform(database, request) });
        if (request.kind === 'close') parentPort?.close();
      } catch (error) {
        if (isSurvivable(error)) reply({ kind: 'error', id: request.id, error: failureOf(error) });
        else reply({ kind: 'fatal', error: failureOf(error) });
      }
    });
  });
  reply({ kind: 'ready' });
}

main().catch((error: unknown) => reply({ kind: 'fatal', error: failureOf(error) }));
