import { describe, expect, it } from 'vitest';
import type { OperationDef, PlaneModel } from '../model.ts';
import { compilePlane } from './planes.ts';
import { requestDecoder } from './request-decoder.ts';
import { responseEncoder } from './response-encoder.ts';
import { newWalk } from './walk.ts';

/** What REST-JSON knows and the published model does not use yet, so that an update of the model cannot surprise. */
const model: PlaneModel = {
  apiVersion: '2026-01-01',
  serviceId: 'Synthetic',
  signingName: 'synthetic',
  operations: {},
  shapes: {
    Text: { type: 'string' },
    Flag: { type: 'boolean' },
    Count: { type: 'integer' },
    Ratio: { type: 'double' },
    Time: { type: 'timestamp' },
    Bytes: { type: 'blob' },
    Texts: { type: 'list', member: { shape: 'Text' } },
    TextMap: { type: 'map', key: { shape: 'Text' }, value: { shape: 'Text' } },
    Anything: {
      type: 'structure',
      payload: 'text',
      members: {
        text: { shape: 'Text' },
        flag: { shape: 'Flag', location: 'header', locationName: 'X-Flag' },
        when: { shape: 'Time', location: 'header', locationName: 'X-When' },
        exact: { shape: 'Time', location: 'header', locationName: 'X-Exact', timestampFormat: 'iso8601' },
        json: { shape: 'Text', location: 'header', locationName: 'X-Json', jsonvalue: true },
        meta: { shape: 'TextMap', location: 'headers', locationName: 'X-Meta-' },
        status: { shape: 'Count', location: 'statusCode' },
      },
    },
    Queried: {
      type: 'structure',
      members: {
        since: { shape: 'Time', location: 'querystring', locationName: 'since' },
        ratio: { shape: 'Ratio', location: 'querystring', locationName: 'ratio' },
        all: { shape: 'TextMap', location: 'querystring' },
        label: { shape: 'Count', location: 'uri', locationName: 'label' },
      },
    },
    Renamed: {
      type: 'structure',
      members: {
        text: { shape: 'Text', locationName: 'TEXT' },
        stamp: { shape: 'Time', timestampFormat: 'rfc822' },
        nested: { shape: 'Text', jsonvalue: true },
      },
    },
  },
};

const codec = compilePlane('data', model);
const operation = (shape: string): OperationDef => ({
  http: { method: 'POST', requestUri: '/x', responseCode: 200 },
  input: shape,
  output: shape,
  errors: [],
});
const none = { labels: {}, query: '', headers: {} };

describe('bindings', () => {
  it('carry headers, prefix headers, status and a payload of text, both ways', () => {
    const output = {
      text: 'body',
      flag: false,
      when: new Date(2000),
      exact: new Date(3500),
      json: { a: [1, 'é'] },
      meta: { one: '1', two: '2' },
      status: 207,
    };
    const response = responseEncoder(codec, operation('Anything'))(output);
    expect(response.status).toBe(207);
    expect(response.headers).toEqual({
      'x-flag': 'false',
      'x-when': 'Thu, 01 Jan 1970 00:00:02 GMT',
      'x-exact': '1970-01-01T00:00:03.500Z',
      'x-json': Buffer.from('{"a":[1,"é"]}').toString('base64'),
      'x-meta-one': '1',
      'x-meta-two': '2',
      'content-type': 'text/plain; charset=utf-8',
    });
    const walk = newWalk();
    const body = Buffer.from(String(response.body));
    const input = requestDecoder(codec, operation('Anything'))({ ...none, headers: response.headers, body }, walk);
    const { status: _, ...sent } = output;
    expect(walk.problems).toEqual([]);
    expect(input).toEqual(sent);
  });

  it('carry typed and free query parameters', () => {
    const walk = newWalk();
    const query = 'since=1970-01-01T00%3A00%3A01Z&ratio=-1.5e3&free=a+b&__proto__=x';
    const input = requestDecoder(codec, operation('Queried'))({ ...none, labels: { label: '-7' }, query }, walk);
    expect(walk.problems).toEqual([]);
    expect(input).toEqual({
      since: new Date(1000),
      ratio: -1500,
      all: { since: '1970-01-01T00:00:01Z', ratio: '-1.5e3', free: 'a b' },
      label: -7,
    });
  });

  it('name what cannot be read', () => {
    const walk = newWalk();
    const query = 'since=soon&ratio=0x10&ratio=1&bad=%zz';
    requestDecoder(codec, operation('Queried'))({ ...none, labels: { label: '1.5' }, query }, walk);
    const headers = { 'x-flag': 'yes', 'x-json': '%%%', 'x-when': 'late' };
    requestDecoder(codec, operation('Anything'))({ ...none, headers, body: Buffer.from([0xff]) }, walk);
    expect(walk.problems.map((p) => p.name)).toEqual([
      'query',
      'since',
      'ratio',
      'label',
      'body',
      'flag',
      'when',
      'json',
    ]);
  });

  it('carry renamed members, dates in a format of their own and JSON inside text', () => {
    const output = { text: 't', stamp: new Date(0), nested: { deep: [true] } };
    const { body } = responseEncoder(codec, operation('Renamed'))(output);
    expect(JSON.parse(String(body))).toEqual({
      TEXT: 't',
      stamp: 'Thu, 01 Jan 1970 00:00:00 GMT',
      nested: '{"deep":[true]}',
    });
    const walk = newWalk();
    const decode = requestDecoder(codec, operation('Renamed'));
    expect(decode({ ...none, body: Buffer.from(String(body)) }, walk)).toEqual(output);
    decode({ ...none, body: Buffer.from('{"nested":"{"}') }, walk);
    expect(walk.problems).toEqual([{ name: 'nested', message: 'must be a string that holds JSON' }]);
  });

  it('of a list in a header are none: a model with one is refused when it is read', () => {
    const shapes: PlaneModel['shapes'] = {
      ...model.shapes,
      Listed: {
        type: 'structure',
        members: { names: { shape: 'Texts', location: 'header', locationName: 'X-Names' } },
      },
    };
    const listing = compilePlane('data', { ...model, shapes });
    expect(() => requestDecoder(listing, operation('Listed'))).toThrow('names is a list in a header');
    expect(() => responseEncoder(listing, operation('Listed'))({ names: ['a'] })).toThrow('A list cannot travel');
  });
});
