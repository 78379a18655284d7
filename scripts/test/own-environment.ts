import { setFlagsFromString } from 'node:v8';
import { afterAll } from 'vitest';
import { WASM_FLAG } from './wasm-flag.ts';

setFlagsFromString(WASM_FLAG);

// Runs in front of each file. Files may share a process: what one of them sets for itself, or where it goes, ends with it.
const before = { ...process.env };
const folder = process.cwd();

afterAll(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
  if (process.cwd() !== folder) process.chdir(folder);
});
