import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { answering, freePort } from '../gateway/orders-api.ts';
import { startChild } from '../support/child.ts';
import { type Contestant, plain } from './contestants.ts';
import { MODEL, type Provider } from './provider.ts';

const ROOT = join(import.meta.dirname, '../..');
const REQUIREMENTS = join(import.meta.dirname, 'litellm-requirements.txt');
/** Nothing that is not needed here costs it time: no database, no key, no telemetry, no prices from elsewhere. */
const SETTINGS = {
  LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  LITELLM_LOG: 'ERROR',
  LITELLM_TELEMETRY: 'False',
  LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true',
};
const START_SECONDS = 120;

export interface Peer {
  contestant: Contestant;
  version: string;
  end(): Promise<void>;
}

/** LiteLLM's proxy in front of the provider, one process. Rejects where it cannot be installed or does not start. */
export async function startLitellm({ url }: Provider): Promise<Peer> {
  const packages = await pythonPackages(ROOT, REQUIREMENTS);
  if (packages === undefined) throw new Error('pip could not install it');
  const home = await mkdtemp(join(tmpdir(), 'bench-litellm-'));
  const config = join(home, 'config.json');
  const litellm_params = { model: `openai/${MODEL}`, api_base: `${url}/v1`, api_key: 'sk-bench' };
  // JSON is YAML.
  await writeFile(config, JSON.stringify({ model_list: [{ model_name: MODEL, litellm_params }] }));
  const port = await freePort();
  const environment = Object.entries({ ...SETTINGS, PYTHONPATH: packages }).map(([name, value]) => `${name}=${value}`);
  const command = ['python3', '-m', 'litellm.proxy.proxy_cli', '--config', config, '--host', '127.0.0.1'];
  const child = await startChild('env', ['-C', home, ...environment, ...command, '--port', String(port)]);
  const end = async (): Promise<void> => {
    await child.end();
    await rm(home, { recursive: true, force: true });
  };
  await answering(port, START_SECONDS).catch((error: unknown) => end().then(() => Promise.reject(error)));
  const [, version = 'unknown'] = (await readFile(REQUIREMENTS, 'utf8')).trim().split('==');
  return { contestant: plain('LiteLLM', 'peer', port, child.pid), version, end };
}
