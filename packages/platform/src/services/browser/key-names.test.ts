import { describe, expect, it } from 'vitest';
import { keyOf, modifierBit } from './key-names.ts';

describe('a key', () => {
  it('has the names that people write', () => {
    for (const name of ['enter', 'Enter', 'RETURN', 'return']) expect(keyOf(name)?.key).toBe('Enter');
    for (const name of ['page_down', 'PageDown', 'pgdn', 'page down']) expect(keyOf(name)?.key).toBe('PageDown');
    expect([keyOf('ctrl'), keyOf('cmd'), keyOf('shift'), keyOf('alt')].map((key) => key && modifierBit(key))).toEqual([
      2, 4, 8, 1,
    ]);
    expect(keyOf('F12')).toMatchObject({ key: 'F12', windowsVirtualKeyCode: 123 });
    expect(keyOf('a')).toEqual({ key: 'a', code: 'KeyA', windowsVirtualKeyCode: 65, text: 'a' });
    expect(keyOf('constructor')).toBeUndefined();
    expect(keyOf('')).toBeUndefined();
  });
});
