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
    .map((line) => JSON.parse(line));
}
