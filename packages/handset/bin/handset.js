#!/usr/bin/env node
// In a checkout the TypeScript sources run as they are; the published package holds only what was built from them.
import { existsSync } from 'node:fs';

const source = new URL('../src/main.ts', import.meta.url);
await import(existsSync(source) ? source.href : new URL('../dist/main.js', import.meta.url).href);
