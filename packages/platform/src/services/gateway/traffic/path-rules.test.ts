import { expect, it } from 'vitest';
import { refusePath } from './path-rules.ts';

it.each(['', '/', '/a', '/a/b/', '/a%20b', '/a/b;v=1/@x:y', '/v1.0/..a/a..', '/%25', '/.well-known/agent-card.json'])(
  'goes on as it is written: %s',
  (path) => {
    expect(() => refusePath(path, 'a=%2F..&b[]=1')).not.toThrow();
  },
);

it.each([
  ...['/..', '/a/../b', '/a/.', '/./a', '/%2e%2e/a', '/a/.%2E', '/%2e', '/..;/a', '/a/..;x=1'],
  ...['//', '/a//b', '//host/a', '/a%2fb', '/%2F', '/a%5cb', '/a\\b', '/a%00', '/a%0d%0aX: y', '/a%7f'],
  ...['/a b', '/a\r\nb', '/ä', '/a%', '/a%2', '/a%zz', '/a#b', '/a"b', '/a<b>', '/a{b}', '/a|b', '/a^b', '/a`b'],
])('is refused: %s', (path) => {
  expect(() => refusePath(path, '')).toThrow('The path ');
});

it.each(['a=b c', 'a=\r\n', 'a=\u0000', 'a=ä', 'a#b', 'a=\t'])('is refused with the query %j', (search) => {
  expect(() => refusePath('/a', search)).toThrow('query');
});
