import { describe, expect, it } from 'vitest';
import type { Compiled } from '../http-tools/compiled.ts';
import { buildRequest, type HttpRequest, type HttpTool, readAnswer } from '../http-tools/index.ts';
import { compileInWorker } from '../openapi/index.ts';
import { compileArguments, type JsonObject } from '../tools/index.ts';
import { compileSmithy } from './index.ts';

type Json = { [key: string]: unknown };

const member = (target: string, traits: Json = {}): Json => ({
  target: target.includes('#') ? target : `smithy.api#${target}`,
  traits: Object.fromEntries(
    Object.entries(traits).map(([name, value]) => [name.includes('#') ? name : `smithy.api#${name}`, value]),
  ),
});
const structure = (members: Json, traits: Json = {}): Json => ({
  type: 'structure',
  members,
  traits: member('x', traits).traits,
});

/** A service with one operation `Do`. */
function model(
  protocol: string,
  input: Json,
  {
    output = structure({}),
    http = { method: 'POST', uri: '/do' } as Json,
    shapes = {} as Json,
    traits = {} as Json,
    operation = {} as Json,
  } = {},
): string {
  return JSON.stringify({
    smithy: '2.0',
    shapes: {
      'ns#Service': {
        type: 'service',
        version: '2020-01-01',
        operations: [{ target: 'ns#Do' }],
        traits: {
          [`aws.protocols#${protocol}`]: {},
          'aws.auth#sigv4': { name: 'svc' },
          'aws.api#service': { endpointPrefix: 'prefix' },
          ...traits,
        },
      },
      'ns#Do': {
        type: 'operation',
        input: { target: 'ns#In' },
        output: { target: 'ns#Out' },
        traits: {
          'smithy.api#http': http,
          'smithy.api#documentation': '<p>Does <b>it</b> &amp; more.</p><ul><li>one</li></ul>',
          ...operation,
        },
      },
      'ns#In': input,
      'ns#Out': output,
      ...shapes,
    },
  });
}

const compile = (text: string): Compiled =>
  compileSmithy({ text }, { target: 'target', endpoint: 'https://svc.example/' });
function toolOf(text: string): HttpTool {
  const { tools, problems } = compile(text);
  const [tool] = tools;
  if (!tool) throw new Error(JSON.stringify(problems));
  return tool;
}
function sent(text: string, args: JsonObject): HttpRequest & { text: string } {
  const tool = toolOf(text);
  expect(compileArguments(tool.inputSchema)(args)).toEqual([]);
  const request = buildRequest(tool.http, args);
  return { ...request, text: Buffer.from(request.body ?? []).toString() };
}

describe('a Smithy model', () => {
  it('gives tools with the text of its documentation, and the name that its signatures have', () => {
    const { tools, operations, leftOut } = compile(
      model('restJson1', structure({}), { operation: { 'smithy.api#readonly': {} } }),
    );
    expect({ operations, leftOut }).toEqual({ operations: 1, leftOut: [] });
    expect(tools[0]?.http.service).toBe('svc');
    expect(tools).toMatchObject([
      {
        name: 'Do',
        description: 'Does it & more.\n\none',
        hints: { readOnly: true, destructive: false, idempotent: true },
        http: { server: 'https://svc.example' },
      },
    ]);
  });

  it('says of members what they must be', () => {
    const shapes = {
      'ns#Name': {
        type: 'string',
        traits: { 'smithy.api#length': { min: 2, max: 3 }, 'smithy.api#pattern': '^[a-z]+$' },
      },
      'ns#Color': {
        type: 'enum',
        members: { RED: { target: 'smithy.api#Unit', traits: { 'smithy.api#enumValue': 'red' } } },
      },
      'ns#Names': { type: 'list', member: { target: 'ns#Name' }, traits: { 'smithy.api#length': { max: 1 } } },
      'ns#Map': { type: 'map', key: { target: 'ns#Name' }, value: { target: 'smithy.api#Integer' } },
      'ns#Tree': structure({ left: member('ns#Tree'), one: member('ns#Choice') }),
      'ns#Choice': { type: 'union', members: { a: member('String'), b: member('Blob') } },
      'ns#In$applied': { type: 'apply', traits: { 'smithy.api#required': {} } },
    };
    const input = structure({
      name: member('ns#Name', { required: {}, documentation: 'Which' }),
      color: member('ns#Color'),
      names: member('ns#Names'),
      map: member('ns#Map'),
      size: member('Integer', { range: { min: 1 } }),
      tree: member('ns#Tree'),
      when: member('Timestamp'),
      iso: member('Timestamp', { timestampFormat: 'date-time' }),
      applied: member('String'),
      any: member('Document'),
    });
    const { inputSchema } = toolOf(model('restJson1', input, { shapes }));
    const check = (args: JsonObject): string[] => compileArguments(inputSchema)(args).map(({ path }) => path);
    expect(
      check({
        name: 'ab',
        applied: 'x',
        color: 'red',
        names: ['ab'],
        map: { ab: 1 },
        size: 1,
        tree: { left: { one: { a: 'x' } } },
        when: 1.5,
        iso: '2020-01-01T00:00:00Z',
        any: [{}],
      }),
    ).toEqual([]);
    expect(
      check({
        name: 'A',
        color: 'blue',
        names: ['ab', 'cd'],
        map: { A: 'x' },
        size: 0,
        tree: { one: { a: 'x', b: 'eA==' } },
        when: 'x',
      }),
    ).toEqual(['/applied', '/name', '/name', '/color', '/names', '/map/A', '/map/A', '/size', '/tree/one', '/when']);
    expect(inputSchema.properties).toMatchObject({ name: { description: 'Which' } });
    expect(Object.keys(inputSchema.$defs ?? {})).toEqual(['Tree', 'Choice']);
  });

  it('of restJson1 puts members where their traits say', () => {
    const input = structure({
      bucket: member('String', { httpLabel: {}, required: {} }),
      key: member('String', { httpLabel: {}, required: {} }),
      max: member('Integer', { httpQuery: 'max-keys' }),
      more: member('ns#Map', { httpQueryParams: {} }),
      tag: member('String', { httpHeader: 'X-Tag' }),
      meta: member('ns#Map', { httpPrefixHeaders: 'x-meta-' }),
      name: member('String', { jsonName: 'Name' }),
    });
    const shapes = {
      'ns#Map': { type: 'map', key: { target: 'smithy.api#String' }, value: { target: 'smithy.api#String' } },
    };
    const text = model('restJson1', input, { http: { method: 'PUT', uri: '/{bucket}/{key+}?x-id=Do' }, shapes });
    const {
      method,
      url,
      headers,
      text: body,
    } = sent(text, { bucket: 'b/c', key: 'd/e f', max: 5, more: { q: '1' }, tag: 't', meta: { a: 'b' }, Name: 'n' });
    expect([method, url.href]).toEqual(['PUT', 'https://svc.example/b%2Fc/d/e%20f?x-id=Do&max-keys=5&q=1']);
    expect(headers).toMatchObject({ 'x-tag': 't', 'x-meta-a': 'b', 'content-type': 'application/json' });
    expect(body).toBe('{"Name":"n"}');
  });

  it('has payloads that are structures, bytes and text', () => {
    const payload = (target: string, shapes: Json = {}): string =>
      model('restJson1', structure({ body: member(target, { httpPayload: {} }) }), { shapes });
    expect(
      sent(payload('ns#Inner', { 'ns#Inner': structure({ a: member('String') }) }), { body: { a: 'x' } }).text,
    ).toBe('{"a":"x"}');
    expect(sent(payload('Blob'), { body: 'aGk=' })).toMatchObject({
      text: 'hi',
      headers: { 'content-type': 'application/octet-stream' },
    });
    expect(sent(payload('String'), { body: 'hi' })).toMatchObject({
      text: 'hi',
      headers: { 'content-type': 'text/plain' },
    });
  });

  it('has no arguments for headers of credentials and of the message', () => {
    const input = structure({
      type: member('String', { httpHeader: 'Content-Type' }),
      other: member('String', { httpHeader: 'X-Other' }),
    });
    expect(Object.keys(toolOf(model('restJson1', input)).inputSchema.properties ?? {})).toEqual(['other']);
  });

  it('of awsJson names its operation in a header', () => {
    const { method, url, headers, text } = sent(
      model('awsJson1_0', structure({ a: member('String', { jsonName: 'ignored' }) })),
      { a: 'x' },
    );
    expect([method, url.href, text]).toEqual(['POST', 'https://svc.example/', '{"a":"x"}']);
    expect(headers).toMatchObject({ 'x-amz-target': 'Service.Do', 'content-type': 'application/x-amz-json-1.0' });
    expect(sent(model('awsJson1_1', structure({})), {}).text).toBe('{}');
  });

  const others = {
    'ns#List': { type: 'list', member: { target: 'ns#Item', traits: { 'smithy.api#xmlName': 'Entry' } } },
    'ns#Plain': { type: 'list', member: { target: 'smithy.api#String' } },
    'ns#Map': { type: 'map', key: { target: 'smithy.api#String' }, value: { target: 'smithy.api#Integer' } },
    'ns#Item': structure({ id: member('Integer', { xmlAttribute: {} }), name: member('String') }),
  };
  const nested = structure(
    {
      list: member('ns#List'),
      flat: member('ns#Plain', { xmlFlattened: {}, xmlName: 'Flat' }),
      map: member('ns#Map'),
      flag: member('Boolean'),
    },
    { xmlName: 'Root', xmlNamespace: { uri: 'http://ns' } },
  );
  const args = { list: [{ id: 1, name: 'a<&>' }], flat: ['x', 'y'], map: { k: 2 }, flag: true };

  it('of awsQuery has structures by dots and entries by numbers', () => {
    const pairs = [...new URLSearchParams(sent(model('awsQuery', nested, { shapes: others }), args).text)].map((pair) =>
      pair.join('='),
    );
    expect(pairs).toEqual([
      'Action=Do',
      'Version=2020-01-01',
      'list.Entry.1.id=1',
      'list.Entry.1.name=a<&>',
      'Flat.1=x',
      'Flat.2=y',
      'map.entry.1.key=k',
      'map.entry.1.value=2',
      'flag=true',
    ]);
  });

  const xml =
    '<Root xmlns="http://ns"><list><Entry id="1"><name>a&lt;&amp;&gt;</name></Entry></list><Flat>x</Flat><Flat>y</Flat><map><entry><key>k</key><value>2</value></entry></map><flag>true</flag></Root>';

  it('of restXml writes elements and attributes', () => {
    expect(sent(model('restXml', nested, { shapes: others }), args)).toMatchObject({
      text: xml,
      headers: { 'content-type': 'application/xml' },
    });
  });

  it('of restXml has the namespace of the service around it, or its own, with its prefix', () => {
    const grantee = { xmlNamespace: { uri: 'http://xsi', prefix: 'xsi' } };
    const shapes = {
      'ns#Grantee': structure({ kind: member('String', { xmlAttribute: {}, xmlName: 'xsi:type' }) }, grantee),
    };
    const input = structure({ to: member('ns#Grantee') });
    const traits = { 'smithy.api#xmlNamespace': { uri: 'http://of-the-service' } };
    expect(sent(model('restXml', input, { shapes, traits }), { to: { kind: 'User' } }).text).toBe(
      '<In xmlns="http://of-the-service"><to xmlns:xsi="http://xsi" xsi:type="User"></to></In>',
    );
    expect(sent(model('restXml', nested, { shapes: others, traits }), args).text).toBe(xml);
  });

  it('of restXml and awsQuery reads answers as what they are', async () => {
    const read = async (text: string, answer: string): Promise<unknown> => {
      async function* body(): AsyncGenerator<Uint8Array> {
        yield Buffer.from(answer);
      }
      const result = await readAnswer(
        toolOf(text),
        { status: 200, headers: { 'content-type': 'text/xml' }, body: body() },
        { maxBytes: 10_000, mask: ['secret-1'] },
      );
      expect(result.isError).toBeUndefined();
      return result.structuredContent;
    };
    expect(await read(model('restXml', structure({}), { output: nested, shapes: others }), xml)).toEqual(args);
    const query = `<DoResponse><DoResult>${xml.slice(xml.indexOf('<list>'), xml.indexOf('</Root>')).replace(' id="1">', '><id>1</id>')}</DoResult><ResponseMetadata/></DoResponse>`;
    expect(await read(model('awsQuery', structure({}), { output: nested, shapes: others }), query)).toEqual(args);
    expect(
      await read(
        model('restXml', structure({}), { output: nested, shapes: others }),
        '<Root><Flat>secret-1</Flat></Root>',
      ),
    ).toEqual({ flat: ['[masked]'] });
  });

  it.each<[string, string]>([
    [
      'streams events',
      model('restJson1', structure({ events: member('ns#Events', { httpPayload: {} }) }), {
        shapes: { 'ns#Events': { type: 'union', members: {}, traits: { 'smithy.api#streaming': {} } } },
      }),
    ],
    [
      'choose a part of the host',
      model('restJson1', structure({ host: member('String', { hostLabel: {} }) }), {
        operation: { 'smithy.api#endpoint': { hostPrefix: '{host}.' } },
      }),
    ],
    [
      'not for arguments to set',
      model('restJson1', structure({ auth: member('String', { httpHeader: 'Authorization', required: {} }) })),
    ],
    ['no shape ns#None', model('restJson1', structure({ a: member('ns#None') }))],
    ['no trait "http"', model('restJson1', structure({}), { operation: { 'smithy.api#http': 'x' } })],
    ['is not a path', model('restJson1', structure({}), { http: { method: 'GET', uri: '/a/../b' } })],
    [
      'nested too deep',
      model('restJson1', structure({ a: member('ns#L') }), {
        shapes: { 'ns#L': { type: 'list', member: { target: 'ns#L' } } },
      }),
    ],
  ])('leaves out what cannot be called, with its line: %s', (why, text) => {
    const { tools, leftOut, problems, operations } = compile(JSON.stringify(JSON.parse(text), undefined, 1));
    expect([tools.length, operations]).toEqual([0, 1]);
    expect(leftOut).toEqual([{ operation: 'Do', why: expect.stringContaining(why) }]);
    expect(problems).toMatchObject([{ severity: 'error', where: '#/shapes/ns#Do', line: expect.any(Number) }]);
  });

  it.each<[string, string]>([
    ['not a Smithy model', '{}'],
    ['JSON cannot be read', '{'],
    ['no service', '{"smithy":"2.0","shapes":{}}'],
    ['speaks none of', model('restJson1', structure({})).replaceAll('restJson1', 'ec2Query')],
    ['longer than', `{"x":"${'x'.repeat(11 * 1024 * 1024)}"}`],
  ])('that cannot be used says why: %s', (why, text) => {
    expect(compile(text)).toMatchObject({
      tools: [],
      problems: [{ severity: 'error', message: expect.stringContaining(why) }],
    });
  });

  it('is where its endpoint prefix and the region say, where the target does not', () => {
    const text = model('restJson1', structure({}), { operation: { 'smithy.api#endpoint': { hostPrefix: 'data.' } } });
    expect(compileSmithy({ text }, { target: 't', region: 'eu-west-1' }).tools[0]?.http.server).toBe(
      'https://data.prefix.eu-west-1.amazonaws.com',
    );
    expect(compileSmithy({ text }, { target: 't' }).problems).toMatchObject([
      { message: expect.stringContaining('Where the service is') },
    ]);
  });

  it('gives the same in a thread', async () => {
    const job = {
      input: { text: model('restXml', nested, { shapes: others }) },
      options: { target: 't', endpoint: 'https://x' },
    };
    expect(await compileInWorker({ kind: 'smithy', ...job })).toEqual(compileSmithy(job.input, job.options));
  });
});
