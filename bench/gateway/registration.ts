import { readFile } from 'node:fs/promises';
import { publicDocument } from '../../tests/support/public-documents.ts';
import { median } from '../support/statistics.ts';
import type { BenchGateways } from './bench-gateways.ts';
import { callOf, SAID } from './orders-api.ts';

/** Milliseconds from the request that makes a target of GitHub's document; medians. */
export interface Registration {
  package: string;
  /** Until the target is READY; it is looked at every 50 ms. */
  ready: number;
  /** Until the first call of one of its tools was answered. */
  callable: number;
}

const PATH = 'generated/api.github.com.json';
/** Of an operation without arguments, `meta/root`. */
const TOOL = 'github___meta_root';

/** GitHub's document behind so many gateways, one after the other, with the API in GitHub's place; undefined where npm cannot bring it. */
export async function register(gateways: BenchGateways, url: string, times: number): Promise<Registration | undefined> {
  const published = await publicDocument(PATH);
  if (published === undefined) return undefined;
  const document = JSON.parse(await readFile(published.file, 'utf8'));
  await gateways.keep('github', JSON.stringify({ ...document, servers: [{ url }] }));
  const ready: number[] = [];
  const callable: number[] = [];
  for (let at = 0; at < times; at += 1) {
    const id = await gateways.create(`github-${at}`);
    const begun = performance.now();
    await gateways.register(id, 'github', { key: 'github' });
    ready.push(performance.now() - begun);
    const answer = JSON.stringify(await gateways.ask(id, callOf(TOOL, {})));
    callable.push(performance.now() - begun);
    if (!answer.includes(SAID)) throw new Error(`${TOOL} answers ${answer.slice(0, 300)}`);
  }
  return { package: published.package, ready: median(ready), callable: median(callable) };
}
