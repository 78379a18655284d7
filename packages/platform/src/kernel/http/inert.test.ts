import { expect, it } from 'vitest';
import { mayRun } from './inert.ts';

it.each([
  'application/json',
  'application/json; charset=utf-8',
  'text/event-stream',
  'application/vnd.amazon.eventstream',
])('knows that no browser runs %s', (type) => expect(mayRun(type)).toBe(false));

it.each([
  'text/html',
  'TEXT/HTML; charset=utf-8',
  'application/xhtml+xml',
  'image/svg+xml',
  'text/plain',
  'application/json-seq',
  'application/jsonx, text/html',
  'text/html; application/json',
  '',
  undefined,
])('takes %s for something that might run', (type) => expect(mayRun(type)).toBe(true));
