import { PLATFORM_CACHE } from './fetched-once.ts';

/**
 * In the environment of each platform under test. A test that wants sandboxes to stand ready, images made ahead or a model says so; for
 * all others they would only cost time.
 */
export const LEAN_PLATFORM = {
  AGENTPLATFORM_CACHE: PLATFORM_CACHE,
  AGENTPLATFORM_POOL_MAX_PER_VERSION: '0',
  AGENTPLATFORM_BROWSER_PREPARE: 'off',
  AGENTPLATFORM_CODE_INTERPRETER_PREPARE: 'off',
  AGENTPLATFORM_EMBEDDINGS_FETCH: 'off',
} as const;
