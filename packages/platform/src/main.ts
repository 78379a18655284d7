import { enableCompileCache } from 'node:module';
import { userCache } from './cache-directory.ts';

// Before anything else is loaded: it takes half a second off each start after the first. Not the default folder, which is in /tmp, where
// others could put code for us to run.
enableCompileCache(userCache(process.env));
const { serve } = await import('./serve.ts');
process.exitCode = await serve(process.argv.slice(2));
