import { parentPort, workerData } from 'node:worker_threads';
import { compileOpenApi } from '../openapi/compile.ts';
import { compileSmithy } from '../smithy/compile.ts';
import type { FromWorker, ThreadJob, ToWorker } from './compile-in-worker.ts';
import type { Compiled } from './compiled.ts';

/** Runs one job in the thread; further files of the document are asked for by messages. */
async function run(job: ThreadJob, port: NonNullable<typeof parentPort>): Promise<void> {
  const asked = new Map<string, (answer: ToWorker) => void>();
  port.on('message', (answer: ToWorker) => asked.get(answer.url)?.(answer));
  const tell = (message: FromWorker): void => port.postMessage(message);
  const resolve = async (url: string): Promise<string> => {
    const answer = await new Promise<ToWorker>((told) => {
      asked.set(url, told);
      tell({ wants: url });
    });
    if (answer.text === undefined) throw new Error(answer.why);
    return answer.text;
  };
  tell({ compiled: await compiled(job, resolve) });
  port.close();
}

async function compiled({ job, resolves }: ThreadJob, resolve: (url: string) => Promise<string>): Promise<Compiled> {
  if (job.kind === 'smithy') return compileSmithy(job.input, job.options);
  return await compileOpenApi(job.input, resolves ? { ...job.options, resolve } : job.options);
}

if (parentPort) await run(workerData, parentPort);
