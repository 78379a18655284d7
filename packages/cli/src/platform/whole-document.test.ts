import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { wholeDocument } from './whole-document.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentcore-document-'));
  await mkdir(join(folder, 'api', 'parts'), { recursive: true });
  await writeFile(join(folder, 'secret.yaml'), 'password: 7\n');
  await writeFile(
    join(folder, 'api', 'parts', 'pet.yaml'),
    "Pet: { properties: { owner: { $ref: 'owner.json' }, mate: { $ref: '#/Pet' } } }\n",
  );
  await writeFile(
    join(folder, 'api', 'parts', 'owner.json'),
    '{ "properties": { "pet": { "$ref": "pet.yaml#/Pet" }, "root": { "$ref": "../api.yaml#/info" } } }',
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const file = () => pathToFileURL(join(folder, 'api', 'api.yaml'));

it('puts the files of a document into it, each once, with references that stay right', async () => {
  const text = "openapi: 3.1.0\ninfo: { $ref: './parts/pet.yaml#/Pet' }\nown: { $ref: '#/info' }\n";
  expect(JSON.parse(await wholeDocument(text, file()))).toEqual({
    openapi: '3.1.0',
    info: { $ref: '#/x-files/0/Pet' },
    own: { $ref: '#/info' },
    'x-files': [
      { Pet: { properties: { owner: { $ref: '#/x-files/1' }, mate: { $ref: '#/x-files/0/Pet' } } } },
      { properties: { pet: { $ref: '#/x-files/0/Pet' }, root: { $ref: '#/info' } } },
    ],
  });
});

it('names servers and files by their whole addresses where the document has one', async () => {
  const at = new URL('https://api.example.com/docs/v1/openapi.yaml');
  const text =
    "openapi: 3.0.3\nservers: [{ url: ../api }, { url: 'https://{host}/x' }, { url: '{base}/y' }]\na: { $ref: 'b.yaml#/c' }\n";
  expect(JSON.parse(await wholeDocument(text, at))).toEqual({
    openapi: '3.0.3',
    servers: [{ url: 'https://api.example.com/docs/api' }, { url: 'https://{host}/x' }, { url: '{base}/y' }],
    a: { $ref: 'https://api.example.com/docs/v1/b.yaml#/c' },
  });
  expect(JSON.parse(await wholeDocument('openapi: 3.0.3\n', at))).toEqual({
    ...{ openapi: '3.0.3', servers: [{ url: 'https://api.example.com' }] },
  });
});

it('leaves a document as it is written that needs nothing, or cannot be read', async () => {
  for (const text of ["openapi: 3.0.3 # as it is\na: { $ref: '#/b' }\n", 'a: [', '{"a":', '[{"name":"tool"}]'])
    expect(await wholeDocument(text, file())).toBe(text);
});

it('reads nothing outside of the folder of the document, and says which file is missing', async () => {
  for (const other of [
    '../secret.yaml',
    join(folder, 'secret.yaml'),
    'parts/../../secret.yaml',
    'file:///etc/hostname',
  ])
    await expect(wholeDocument(`a: { $ref: '${other}#/password' }`, file()), other).rejects.toThrow(
      'not below its own folder',
    );
  await expect(wholeDocument("a: { $ref: 'none.yaml' }", file())).rejects.toThrow(/none\.yaml, which cannot be read/);
});
