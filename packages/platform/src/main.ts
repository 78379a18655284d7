import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

// Before anything else is loaded: it takes half a second off each start after the first. Not the default folder, which is in /tmp, where
// others could put code for us to run.
enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'agentplatform'));
const { serve } = await import('./serve.ts');
process.exitCode = await serve(process.argv.slice(2));
