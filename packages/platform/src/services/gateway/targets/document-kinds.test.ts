import { expect, it } from 'vitest';
import type { Outbound } from '../../../kernel/outbound/index.ts';
import { type DocumentKindsDeps, documentKinds } from './document-kinds.ts';
import type { ToolSource } from './target-kind.ts';

// Nothing of it is asked for here.
const deps = { calls: {}, outbound: {} as Outbound, region: 'us-east-1' } as unknown as DocumentKindsDeps;
const kinds = documentKinds(deps);

const operation = (operationId: string, schema: object) => ({
  post: {
    operationId,
    parameters: [{ name: 'kind', in: 'query', schema: { type: 'string', ...schema } }],
    responses: { 200: { description: 'ok' } },
  },
});

it('leaves out a tool whose schema has text that no database takes, and no other', async () => {
  const paths = {
    '/good': operation('good', { enum: ['a', 'ü', '😀'] }),
    '/nul': operation('nul', { enum: ['a', '\0'] }),
    '/half': operation('half', { default: '\ud83d' }),
    '/pattern': operation('pattern', { pattern: '^a\0$' }),
  };
  const document = JSON.stringify({
    ...{ openapi: '3.0.3', info: { title: 't', version: '1' }, servers: [{ url: 'https://api.example' }], paths },
  });
  const source = {
    ...{ target: { name: 't' }, definition: { targetConfiguration: {}, credentialProviderConfigurations: [] } },
    ...{ document, signal: new AbortController().signal },
  } as unknown as ToolSource;
  const { tools, problems } = await kinds.openApiSchema.makeTools(source);
  expect(tools.map(({ name }) => name)).toEqual(['good']);
  expect(problems.filter(({ message }) => message.includes('cannot be stored')).map(({ where }) => where)).toEqual([
    ...['nul', 'half', 'pattern'],
  ]);
});
