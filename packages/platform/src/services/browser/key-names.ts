/** A key as the browser's protocol describes it. */
export interface Key {
  key: string;
  code: string;
  windowsVirtualKeyCode: number;
  /** What it writes; absent for one that writes nothing. */
  text?: string;
}

const named = (key: string, windowsVirtualKeyCode: number, more: Partial<Key> = {}): Key => ({
  key,
  code: key,
  windowsVirtualKeyCode,
  ...more,
});

/** Keys by their names, in lower case, with the names that other tools have for them. */
const NAMED: Readonly<Record<string, Key>> = {
  enter: named('Enter', 13, { text: '\r' }),
  tab: named('Tab', 9),
  space: named(' ', 32, { code: 'Space', text: ' ' }),
  backspace: named('Backspace', 8),
  delete: named('Delete', 46),
  escape: named('Escape', 27),
  insert: named('Insert', 45),
  home: named('Home', 36),
  end: named('End', 35),
  pageup: named('PageUp', 33),
  pagedown: named('PageDown', 34),
  arrowup: named('ArrowUp', 38),
  arrowdown: named('ArrowDown', 40),
  arrowleft: named('ArrowLeft', 37),
  arrowright: named('ArrowRight', 39),
  capslock: named('CapsLock', 20),
  control: named('Control', 17, { code: 'ControlLeft' }),
  alt: named('Alt', 18, { code: 'AltLeft' }),
  shift: named('Shift', 16, { code: 'ShiftLeft' }),
  meta: named('Meta', 91, { code: 'MetaLeft' }),
  ...Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`f${i + 1}`, named(`F${i + 1}`, 112 + i)])),
};

const OTHER_NAMES: Readonly<Record<string, string>> = {
  return: 'enter',
  esc: 'escape',
  del: 'delete',
  ins: 'insert',
  pgup: 'pageup',
  pgdn: 'pagedown',
  up: 'arrowup',
  down: 'arrowdown',
  left: 'arrowleft',
  right: 'arrowright',
  ctrl: 'control',
  option: 'alt',
  cmd: 'meta',
  command: 'meta',
  win: 'meta',
  super: 'meta',
};

/** Bits of the modifiers in events of the browser's protocol. */
const MODIFIERS: Readonly<Record<string, number>> = { Alt: 1, Control: 2, Meta: 4, Shift: 8 };

/** The key of that name or character, however it is written; undefined where there is none. */
export function keyOf(name: string): Key | undefined {
  if ([...name].length === 1) return character(name);
  const lower = name.toLowerCase().replaceAll(/[\s_-]/g, '');
  const known = Object.hasOwn(OTHER_NAMES, lower) ? OTHER_NAMES[lower] : lower;
  return known !== undefined && Object.hasOwn(NAMED, known) ? NAMED[known] : undefined;
}

/** The modifier's bit; 0 for a key that is none. */
export const modifierBit = ({ key }: Key): number => MODIFIERS[key] ?? 0;

function character(text: string): Key {
  const upper = text.toUpperCase();
  if (text === ' ') return NAMED.space ?? named(' ', 32);
  if (/^[A-Z]$/.test(upper))
    return { key: text, code: `Key${upper}`, windowsVirtualKeyCode: upper.charCodeAt(0), text };
  if (/^\d$/.test(text)) return { key: text, code: `Digit${text}`, windowsVirtualKeyCode: text.charCodeAt(0), text };
  return { key: text, code: '', windowsVirtualKeyCode: 0, text };
}
