// What `npm run platform` and `npm start` start. Plain JavaScript, as it stays beside the server: without the stripping of types it takes
// 9 MB of its own instead of 21.
import { fileURLToPath } from 'node:url';
import { supervise } from './supervise.mjs';

// The server reads its arguments from the command line itself; `npm run platform -- --help` lists them.
supervise(fileURLToPath(new URL('../packages/platform/src/main.ts', import.meta.url)), process.argv.slice(2));
