import type { DocumentValue } from '@agentplatform/contract';
import { describe, expect, it } from 'vitest';
import { buildRequest } from './build-request.ts';
import type { HttpParameter, ParameterPlace, ParameterStyle } from './http-tool.ts';

/** What the request has of one parameter `color`: a part of the path, the query, a header or a cookie. */
function written(
  place: ParameterPlace,
  style: ParameterStyle,
  explode: boolean,
  value: DocumentValue,
): string | undefined {
  const color: HttpParameter = { argument: 'color', name: 'color', in: place, style, explode };
  const path = place === 'path' ? '/{color}' : '/';
  const { url, headers } = buildRequest(
    { method: 'GET', server: 'http://x', path, parameters: [color], answer: {} },
    { color: value },
  );
  if (place === 'path') return url.pathname.slice(1);
  return place === 'query' ? url.search.slice(1) : headers[place === 'cookie' ? 'cookie' : 'color'];
}

const ARRAY = ['blue', 'black', 'brown'];
const OBJECT = { R: 100, G: 200, B: 150 };
type Row = [
  ParameterPlace,
  ParameterStyle,
  boolean,
  empty: string | undefined,
  text: string,
  array: string | undefined,
  object: string | undefined,
];

/** "Style Examples" of OpenAPI 3.0.4 and 3.1.1, which are those of RFC 6570. `undefined`: not applicable there. */
const TABLE: Row[] = [
  ['path', 'matrix', false, ';color', ';color=blue', ';color=blue,black,brown', ';color=R,100,G,200,B,150'],
  ['path', 'matrix', true, ';color', ';color=blue', ';color=blue;color=black;color=brown', ';R=100;G=200;B=150'],
  ['path', 'label', false, undefined, '.blue', '.blue,black,brown', '.R,100,G,200,B,150'],
  ['path', 'label', true, undefined, '.blue', '.blue.black.brown', '.R=100.G=200.B=150'],
  ['path', 'simple', false, undefined, 'blue', 'blue,black,brown', 'R,100,G,200,B,150'],
  ['path', 'simple', true, undefined, 'blue', 'blue,black,brown', 'R=100,G=200,B=150'],
  ['header', 'simple', false, '', 'blue', 'blue,black,brown', 'R,100,G,200,B,150'],
  ['header', 'simple', true, '', 'blue', 'blue,black,brown', 'R=100,G=200,B=150'],
  ['query', 'form', false, 'color=', 'color=blue', 'color=blue,black,brown', 'color=R,100,G,200,B,150'],
  ['query', 'form', true, 'color=', 'color=blue', 'color=blue&color=black&color=brown', 'R=100&G=200&B=150'],
  ['cookie', 'form', false, 'color=', 'color=blue', 'color=blue,black,brown', 'color=R,100,G,200,B,150'],
  ['cookie', 'form', true, 'color=', 'color=blue', 'color=blue; color=black; color=brown', 'R=100; G=200; B=150'],
  [
    'query',
    'spaceDelimited',
    false,
    'color=',
    'color=blue',
    'color=blue%20black%20brown',
    'color=R%20100%20G%20200%20B%20150',
  ],
  [
    'query',
    'pipeDelimited',
    false,
    'color=',
    'color=blue',
    'color=blue%7Cblack%7Cbrown',
    'color=R%7C100%7CG%7C200%7CB%7C150',
  ],
  ['query', 'spaceDelimited', true, 'color=', 'color=blue', 'color=blue&color=black&color=brown', 'R=100&G=200&B=150'],
  ['query', 'pipeDelimited', true, 'color=', 'color=blue', 'color=blue&color=black&color=brown', 'R=100&G=200&B=150'],
  [
    'query',
    'deepObject',
    true,
    undefined,
    'color=blue',
    undefined,
    'color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150',
  ],
];

describe('styles of parameters', () => {
  for (const [place, style, explode, empty, text, array, object] of TABLE)
    it(`${place} ${style}${explode ? ' exploded' : ''}`, () => {
      if (empty !== undefined) expect(written(place, style, explode, '')).toBe(empty);
      expect(written(place, style, explode, 'blue')).toBe(text);
      if (array !== undefined) expect(written(place, style, explode, ARRAY)).toBe(array);
      if (object !== undefined) expect(written(place, style, explode, OBJECT)).toBe(object);
    });

  it('nest by brackets in deepObject, lists by number', () => {
    const nested = { items: [{ price: 'p', quantity: 2 }], a: { b: 'c d' } };
    expect(decodeURIComponent(written('query', 'deepObject', true, nested) ?? '')).toBe(
      'color[items][0][price]=p&color[items][0][quantity]=2&color[a][b]=c d',
    );
  });

  it('keep what separates values apart from the values', () => {
    expect(written('query', 'form', false, ['a,b', 'c&d=e'])).toBe('color=a%2Cb,c%26d%3De');
    expect(written('cookie', 'form', true, 'a; admin=1')).toBe('color=a%3B%20admin%3D1');
  });
});
