import { endWithOwner } from './end-with-owner.ts';

// The server reads its arguments from the command line itself; `npm run platform -- --help` lists them.
endWithOwner();
await import('../packages/platform/src/main.ts');
