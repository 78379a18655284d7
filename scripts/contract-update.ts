import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { generate } from '../packages/contract/src/generator/generate.ts';
import { type PublishedModel, stripModel } from '../packages/contract/src/generator/strip-model.ts';
import type { Model } from '../packages/contract/src/model.ts';

/**
 * `npm run contract:update [-- --version X]`: fetches the botocore wheel of that version from PyPI with pip and
 * regenerates `packages/contract/src/generated/` from the models inside. Needs Python 3 with pip.
 */
const { values } = parseArgs({ options: { version: { type: 'string', default: '1.44.5' } } });
const generated = new URL('../packages/contract/src/generated/', import.meta.url);
const folders = { data: 'bedrock-agentcore', control: 'bedrock-agentcore-control', models: 'bedrock-runtime' };
/** Of Bedrock Runtime only what asks a model. */
const modelOperations = ['Converse', 'ConverseStream', 'InvokeModel', 'InvokeModelWithResponseStream'];

function download(version: string, into: string): void {
  const options = { stdio: ['ignore', 'ignore', 'inherit'] as ['ignore', 'ignore', 'inherit'], timeout: 300_000 };
  const pip = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary', ':all:', '--dest', into];
  execFileSync('python3', [...pip, `botocore==${version}`], options);
  const wheel = readdirSync(into).find((file) => file.endsWith('.whl'));
  if (wheel === undefined) throw new Error(`pip downloaded no wheel of botocore ${version}`);
  execFileSync('python3', ['-m', 'zipfile', '-e', join(into, wheel), into], options);
}

function readPublished(root: string, folder: string): PublishedModel {
  const versions = readdirSync(join(root, 'botocore', 'data', folder)).sort();
  const newest = versions.at(-1);
  if (newest === undefined) throw new Error(`botocore has no model of ${folder}`);
  const file = join(root, 'botocore', 'data', folder, newest, 'service-2.json.gz');
  return JSON.parse(gunzipSync(readFileSync(file)).toString('utf8'));
}

const work = mkdtempSync(join(tmpdir(), 'contract-update-'));
try {
  console.log(`Downloading botocore ${values.version}`);
  download(values.version, work);
  const model: Model = {
    source: 'botocore',
    version: values.version,
    planes: {
      data: stripModel(readPublished(work, folders.data)),
      control: stripModel(readPublished(work, folders.control)),
      models: stripModel(readPublished(work, folders.models), modelOperations),
    },
  };
  for (const [name, text] of Object.entries(generate(model))) writeFileSync(new URL(name, generated), text);
  const count = Object.values(model.planes).reduce((sum, plane) => sum + Object.keys(plane.operations).length, 0);
  console.log(`Generated ${count} operations from botocore ${values.version}`);
} finally {
  rmSync(work, { recursive: true, force: true });
}
