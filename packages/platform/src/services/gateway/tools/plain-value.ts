import type { DocumentValue } from '@agentplatform/contract';

/** Schemas that people write stay far below. */
const DEEPEST = 64;

/** Whether a value that came as JSON can be kept and shown: not deeper than that, and all its texts can be stored. */
export function isPlain(value: unknown, deepest = DEEPEST): value is DocumentValue {
  if (typeof value === 'string') return isPlainText(value);
  if (typeof value !== 'object' || value === null) return true;
  if (deepest <= 0) return false;
  if (Array.isArray(value)) return value.every((one) => isPlain(one, deepest - 1));
  return Object.entries(value).every(([name, one]) => isPlainText(name) && isPlain(one, deepest - 1));
}

/** PostgreSQL takes neither U+0000 nor half a surrogate pair. */
function isPlainText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}
