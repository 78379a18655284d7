/** A key as the browser's protocol takes it. */
export interface PressedKey {
  key: string;
  code: string;
  windowsVirtualKeyCode: number;
  modifiers: number;
  /** What it writes. */
  text?: string;
}

const CODES: Readonly<Record<string, number>> = {
  ...{ Enter: 13, Tab: 9, Escape: 27, Backspace: 8, Delete: 46, Home: 36, End: 35, PageUp: 33, PageDown: 34 },
  ...{ ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 },
};
const MODIFIERS: Readonly<Record<string, number>> = { Alt: 1, Control: 2, Meta: 4, Shift: 8 };

/** The key that a name such as `Enter`, `a` or `Control+a` is for. Throws for a name that there is none for. */
export function keyOf(named: string): PressedKey {
  const parts = named === '+' ? ['+'] : named.split('+');
  const key = parts.pop() ?? '';
  let modifiers = 0;
  for (const part of parts) {
    const bit = MODIFIERS[part];
    if (bit === undefined) throw new Error(`There is no modifier ${JSON.stringify(part)}.`);
    modifiers |= bit;
  }
  const known = CODES[key];
  if (known !== undefined)
    return { key, code: key, windowsVirtualKeyCode: known, modifiers, ...(key === 'Enter' ? { text: '\r' } : {}) };
  if ([...key].length !== 1)
    throw new Error(
      `There is no key ${JSON.stringify(key)}. Keys are single characters, and ${Object.keys(CODES).join(', ')}.`,
    );
  const upper = key.toUpperCase();
  const letter = /^[A-Z]$/.test(upper) ? { code: `Key${upper}` } : { code: '' };
  const writes = (modifiers & 7) === 0;
  return { key, ...letter, windowsVirtualKeyCode: upper.charCodeAt(0), modifiers, ...(writes ? { text: key } : {}) };
}
