import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { endWithOwner } from './end-with-owner.ts';

/** What `bench/<name>/run.ts` exports: runs the benchmark, prints its ratios. */
interface Benchmark {
  run(args: string[]): Promise<void>;
}

endWithOwner();
const folder = fileURLToPath(new URL('../bench', import.meta.url));
const [name, ...args] = process.argv.slice(2);
const names = readdirSync(folder).filter((one) => existsSync(`${folder}/${one}/run.ts`));

if (name !== undefined && names.includes(name)) {
  const benchmark: Benchmark = await import(pathToFileURL(`${folder}/${name}/run.ts`).href);
  await benchmark.run(args);
} else {
  process.stderr.write(`Usage: npm run bench -- <name> [options]\nBenchmarks: ${names.join(', ') || 'none yet'}\n`);
  process.exitCode = name === undefined || name === '--help' ? 0 : 2;
}
