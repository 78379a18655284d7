import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ObjectError } from '../../kernel/objects/index.ts';
import { childText, readXml, writeXml } from './xml.ts';

/** What XML 1.0 can hold; a bare CR would come back as LF if it were not escaped. */
const texts = fc
  .string({ unit: 'binary' })
  .filter((text) => !/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u.test(text));

test('any text comes back', () => {
  fc.assert(
    fc.property(fc.array(texts), (keys) => {
      const document = readXml(writeXml('Delete', { Object: keys.map((Key) => ({ Key })) }));
      expect(document.children.map((child) => childText(child, 'Key'))).toEqual(keys);
    }),
  );
});

test('any input is read or refused as malformed, nothing else', () => {
  const pieces = fc.constantFrom(
    '<',
    '>',
    '</',
    '/>',
    '<a>',
    '</a>',
    '&amp;',
    '&#x41;',
    '&b;',
    '<!--',
    '-->',
    '<![CDATA[',
    ']]>',
    '<?x',
    '?>',
    '"',
    'a',
    ' ',
    '\0',
    '<!DOCTYPE a [',
    ']>',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(pieces).map((all) => all.join('')),
      ),
      (text) => {
        try {
          readXml(text);
        } catch (error) {
          expect(error).toBeInstanceOf(ObjectError);
          expect(error).toMatchObject({ code: 'MalformedXML' });
        }
      },
    ),
    { numRuns: 500 },
  );
});

test('entities of its own, files and depth are refused', () => {
  const laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><x>&b;</x>';
  const file = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><x>&f;</x>';
  const deep = '<a>'.repeat(1_000) + '</a>'.repeat(1_000);
  for (const text of [laughs, file, deep, '', 'text', '<a>', '<a></b>', '<a/><b/>']) {
    expect(() => readXml(text)).toThrow(ObjectError);
  }
  expect(readXml('<a>&lt;&#65;<![CDATA[<b>]]></a>').text).toBe('<A<b>');
});
