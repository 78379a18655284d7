import { readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';

export interface CedarCase {
  name: string;
  policies: string;
  schema: string;
  entities: unknown[];
  shouldValidate: boolean;
  requests: {
    principal: unknown;
    action: unknown;
    resource: unknown;
    context: unknown;
    validateRequest?: boolean;
    decision: 'allow' | 'deny';
    reason: string[];
    errors: string[];
  }[];
}

export interface DogwoodCase {
  name: string;
  rejected: boolean;
  providers: boolean;
  policies: string;
  schema: string;
  eventSchema: string;
  macros?: string;
  traces: { log: string; expected: string }[];
}

/** A corpus as it was published; collect.mjs packed it. */
export function corpus(name: 'cedar'): CedarCase[];
export function corpus(name: 'dogwood'): DogwoodCase[];
export function corpus(name: string): unknown[] {
  const packed = readFileSync(new URL(`${name}.jsonl.br`, import.meta.url));
  return brotliDecompressSync(packed)
    .toString()
    .split('\n')
    .map((line) => JSON.parse(line, exact));
}

/** Integers of 64 bits stay as they are written, which the types of the language do not know of yet. */
function exact(_name: string, value: unknown, context?: { source: string }): unknown {
  const unsafe = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
  return unsafe && context ? JSON.rawJSON(context.source) : value;
}
