import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { loadServices } from '../../packages/platform/src/open-services.ts';
import { services } from '../../packages/platform/src/services.ts';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** Bytes that are in use: of JavaScript with its compiled code, and of what stands beside its heap. */
function used(): number {
  for (let round = 0; round < 3; round++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

// One after the other, as a start loads them: what two share counts for the first.
const pieces: Record<string, number> = {};
for (const service of services) {
  const before = used();
  await loadServices([service]);
  pieces[service.name] = used() - before;
}
process.stdout.write(JSON.stringify(pieces));
