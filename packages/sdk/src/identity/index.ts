export { ConsentError, type TokenPoller } from './consent.ts';
export { type AccessTokenOptions, type AuthFlow, requiresAccessToken } from './requires-access-token.ts';
export { type ApiKeyOptions, requiresApiKey } from './requires-api-key.ts';
