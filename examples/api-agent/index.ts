import { AgentPlatformApp } from 'agentplatform';
import { requiresAccessToken } from 'agentplatform/identity';

// The agent holds no secret: the platform has the client, and hands over a token that is good for some minutes.
const stockOf = requiresAccessToken({ providerName: 'stock', scopes: ['read'], authFlow: 'M2M' })(
  async (item: string, accessToken: string) => {
    const answer = await fetch(`${process.env.STOCK_URL}/stock/${encodeURIComponent(item)}`, {
      headers: { authorization: `Bearer ${accessToken}` },
    });
    if (!answer.ok) throw new Error(`the API answered ${answer.status}`);
    return answer.text();
  },
);

const app = new AgentPlatformApp(async ({ item }) => stockOf(String(item)));

await app.run();
