/** An agent that gets its credentials by the wrappers of the TypeScript SDK, and gives them no configuration. `main.py` is its twin. */

import { AgentPlatformApp } from 'agentplatform';
import { requiresAccessToken, requiresApiKey } from 'agentplatform/identity';

const same = (credential) => credential;
const orders = { providerName: 'orders', scopes: ['read'] };
const keyOfSearch = requiresApiKey({ providerName: 'search' })(same);
const ownToken = requiresAccessToken({ ...orders, authFlow: 'M2M' })(same);
const exchangedToken = requiresAccessToken({ ...orders, authFlow: 'ON_BEHALF_OF_TOKEN_EXCHANGE' })(same);

/** Says where to consent as soon as that is known, and then the token. */
async function* federation(user) {
  const link = Promise.withResolvers();
  const token = requiresAccessToken({
    providerName: 'orders',
    scopes: ['openid', 'offline_access', 'read'],
    authFlow: 'USER_FEDERATION',
    onAuthUrl: link.resolve,
    customParameters: { login_hint: user, prompt: 'login' },
  })(same)();
  const url = await Promise.race([link.promise, token.then(() => undefined)]);
  if (url !== undefined) yield { url };
  yield { token: await token };
}

const app = new AgentPlatformApp(async (payload, { headers }) => {
  switch (payload.do) {
    case 'key':
      return { key: await keyOfSearch() };
    case 'own':
      return { token: await ownToken() };
    case 'exchange':
      return { token: await exchangedToken(), headers: Object.keys(headers) };
    default:
      return federation(String(payload.user));
  }
});

await app.run();
