import { AgentPlatformApp } from 'agentplatform';
import { requiresAccessToken } from 'agentplatform/identity';

/** The user's orders, read with his own token; `say` gets what he has to know before there is one. */
async function ordersOf(userId: string, say: (text: string) => void): Promise<string> {
  const read = requiresAccessToken({
    providerName: 'orders',
    scopes: ['openid', 'read'],
    authFlow: 'USER_FEDERATION',
    onAuthUrl: (url) => say(`Please allow it first: ${url}`),
    // Spares the user to type his name at the provider.
    customParameters: { login_hint: userId },
  })(async (accessToken: string) => {
    const answer = await fetch(`${process.env.ORDERS_URL}/orders`, {
      headers: { authorization: `Bearer ${accessToken}` },
    });
    if (!answer.ok) throw new Error(`the API answered ${answer.status}`);
    return answer.text();
  });
  return read();
}

const app = new AgentPlatformApp(async function* (_payload, { userId = '' }) {
  let told: (text: string) => void = () => {};
  const link = new Promise<string>((resolve) => {
    told = resolve;
  });
  const orders = ordersOf(userId, told);
  const first = await Promise.race([link, orders]);
  yield first;
  const last = await orders;
  if (last !== first) yield last;
});

await app.run();
