import { expect, it } from 'vitest';
import { actionOf, entryOf } from './recorded-entry.ts';

const what = (method: string, params: object): string | undefined => {
  const entry = actionOf(JSON.stringify({ id: 1, method, params }), 5);
  return entry?.kind === 'action' ? entry.what : undefined;
};

it('keeps what a program does, and no text that it writes: typed, in a script, or before the host of an address', () => {
  expect(what('Input.insertText', { text: 'hunter2' })).toBe('7 characters');
  expect(what('Page.navigate', { url: 'https://shop.example/a?b=c@d' })).toBe('https://shop.example/a?b=c@d');
  expect(what('Page.navigate', { url: 'https://me:hunter2@shop.example/' })).toBe('https://shop.example/');
  expect(what('Runtime.evaluate', { expression: 'scrollBy(0, 100)' })).toBe('scrollBy(0, 100)');
  for (const quoted of ['"hunter2"', "'hunter2'", '`hunter2`', '/"/, "hunter2"', `'${'x'.repeat(300)}hunter2'`])
    expect(what('Runtime.evaluate', { expression: `field.value =\n${quoted}` })).toMatch(/^field\.value =\n\/?…$/);
  const request = { requestId: '1', request: { method: 'GET', url: 'http://me:hunter2@api.example/' } };
  const event = { method: 'Network.requestWillBeSent', params: request, sessionId: 's' };
  expect(entryOf(event, 5)).toMatchObject({ kind: 'request', url: 'http://api.example/' });
});

it('passes over what is no message of the protocol, for the browser answers it', () => {
  for (const text of ['', '{', 'null', '7', '[]', '{"method":7}', '{"method":"Page.close","params":null}'])
    expect(() => actionOf(text, 5)).not.toThrow();
});
