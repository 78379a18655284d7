import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** `npm run bench -- faults <part> [options]`: each file here but this one is a part. */
export async function run([part = '', ...args]: string[]): Promise<void> {
  const file = join(import.meta.dirname, `${part}.ts`);
  if (part === 'run' || !/^[\w-]+$/.test(part) || !existsSync(file)) {
    const parts = readdirSync(import.meta.dirname).flatMap((name) =>
      name === 'run.ts' ? [] : [name.replace('.ts', '')],
    );
    throw new Error(`npm run bench -- faults <part>; parts: ${parts.join(', ')}`);
  }
  const { run: runPart }: { run(args: string[]): Promise<void> } = await import(pathToFileURL(file).href);
  await runPart(args);
}
