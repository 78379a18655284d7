import { errors } from '@agentplatform/contract';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formerlyGiven, givenResources } from './given-resources.ts';

const ACCOUNT = '123456789012';
const home = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}`;
const beside = `${home}:runtime/hello-a1B2c3D4e5`;
const NOTES = `${home}:memory/notes-a1B2c3D4e5`;

describe('the memories that texts name', () => {
  it.each([
    ['an id', 'notes-a1B2c3D4e5', [NOTES]],
    ['an ARN', NOTES, [NOTES]],
    ['one of another account', NOTES.replace(ACCOUNT, '999999999999'), []],
    ['one of another region', NOTES.replace('us-east-1', 'eu-west-1'), []],
    ['another resource', NOTES.replace('memory/', 'gateway/'), []],
    ['what is below a memory', `${NOTES}/x`, []],
    ['all memories', `${home}:memory/*`, []],
    ['some memories', `${home}:memory/notes-??????????`, []],
    ['a text with an id in it', 'my notes-a1B2c3D4e5', []],
    ['two ids', 'notes-a1B2c3D4e5,notes-a1B2c3D4e5', []],
    ['an id and a line end', 'notes-a1B2c3D4e5\n', []],
    ['nothing', '', []],
  ])('%s', (_what, text, found) => {
    expect(formerlyGiven([text, text], beside)).toEqual(found);
  });

  it('are never more than one memory, whatever the text', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((end) => `${home}:memory/${end}`),
        ),
        (text) => {
          for (const arn of formerlyGiven([text], beside))
            expect(arn).toMatch(/^arn:aws:bedrock-agentcore:us-east-1:123456789012:memory\/[\w-]+$/);
        },
      ),
      { seed: 11 },
    );
  });
});

describe('what a deployer gives', () => {
  const asked: string[] = [];
  const caller = (may: readonly string[], failure?: Error) => ({
    accountId: ACCOUNT,
    async require(action: string, resource: string) {
      asked.push(action);
      if (failure) throw failure;
      if (!may.includes(resource)) throw errors.accessDenied('no');
    },
  });
  const of = { texts: ['notes-a1B2c3D4e5', 'other-a1B2c3D4e5', 'x'], region: 'us-east-1', field: 'environment' };

  it('is what he may give', async () => {
    expect(await givenResources(caller([NOTES]), of)).toEqual([NOTES]);
    expect(await givenResources(caller([]), of)).toEqual([]);
    expect(new Set(asked)).toEqual(new Set(['agentplatform:UseMemory']));
  });

  it('is a credential provider by its ARN, never by its name, and only one that he may give', async () => {
    const vault = `${home}:token-vault/default`;
    const [key, token] = [`${vault}/apikeycredentialprovider/search`, `${vault}/oauth2credentialprovider/orders`];
    const others = [
      ...[
        'search',
        vault,
        `${vault}/paymentcredentialprovider/search`,
        `${key}/x`,
        key.replace(ACCOUNT, '999999999999'),
      ],
      ...[key.replace('us-east-1', 'eu-west-1'), `${vault}/apikeycredentialprovider/`, `${key}\n`],
    ];
    const texts = [key, token, key, ...others];
    asked.length = 0;
    expect(await givenResources(caller([key, token, ...others]), { ...of, texts })).toEqual([key, token]);
    expect(asked).toEqual(Array.from({ length: 2 }, () => 'agentplatform:UseCredentialProvider'));
    expect(await givenResources(caller([token]), { ...of, texts })).toEqual([token]);
    const many = Array.from({ length: 12 }, (_, at) => `${vault}/apikeycredentialprovider/${'n'.repeat(120)}${at}`);
    await expect(givenResources(caller([]), { ...of, texts: many })).rejects.toThrow(/12 credential providers/);
  });

  it('is not known where nobody can say', async () => {
    await expect(givenResources(caller([], new Error('the directory is old')), of)).rejects.toThrow('old');
  });

  it('has a bound', async () => {
    const texts = Array.from({ length: 13 }, (_, at) => `notes-a1B2c3D4${String(at).padStart(2, '0')}`);
    await expect(givenResources(caller([]), { ...of, texts })).rejects.toMatchObject({
      ...{ code: 'ValidationException', message: expect.stringContaining('13') },
    });
    expect(await givenResources(caller([]), { ...of, texts: texts.slice(1) })).toEqual([]);
  });
});
