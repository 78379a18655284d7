import { parentPort, workerData } from 'node:worker_threads';
import { compileModule, Instance } from './module.ts';
import { Sets } from './sets.ts';

/** The engine's own thread: one request after the other, by number. */
export type Asked = { number: number; op: string; set?: string; text: string };
export type Answered = { number: number; text: string } | { number: number; failed: string };

const port = parentPort;
if (!port) throw new Error('engine-worker.ts is run as a worker');
const sets = new Sets(compileModule(), workerData.memoryBytes, (module) => new Instance(module));
port.on('message', ({ number, op, set, text }: Asked) => {
  try {
    port.postMessage({ number, text: sets.call(op, set, text) } satisfies Answered);
  } catch (error) {
    port.postMessage({ number, failed: error instanceof Error ? error.message : String(error) } satisfies Answered);
  }
});
