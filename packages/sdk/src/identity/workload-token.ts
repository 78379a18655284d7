import { type BedrockAgentCoreClient, GetWorkloadAccessTokenForUserIdCommand } from '@aws-sdk/client-bedrock-agentcore';
import { getContext } from '../context.ts';
import { LOCAL_FILE, localIdentity } from './local-identity.ts';

/**
 * The token with which this agent asks for credentials: that of the request that it serves, and outside of the platform one of a workload
 * identity of its own. Throws an Error in a sandbox when no request is being served, and the errors of the AWS SDK.
 */
export async function workloadToken(client: BedrockAgentCoreClient): Promise<string> {
  const token = getContext()?.workloadAccessToken;
  if (token !== undefined) return token;
  // Sandboxes have it: there nobody makes identities, and files are nobody's.
  if (process.env.DOCKER_CONTAINER === '1')
    throw new Error(
      'There is no workload access token here. It comes with each request: call this while the entrypoint serves one, not when the agent starts.',
    );
  const { workloadName, userId } = await localIdentity(client);
  const command = new GetWorkloadAccessTokenForUserIdCommand({ workloadName, userId });
  const { workloadAccessToken } = await client.send(command).catch((error: unknown) => {
    if (!(error instanceof Error) || error.name !== 'ResourceNotFoundException') throw error;
    const why = `${LOCAL_FILE} names the workload identity ${workloadName}, which is not on this platform.`;
    throw new Error(`${why} Remove the file, and a new one is made.`, { cause: error });
  });
  if (workloadAccessToken === undefined) throw new Error('The platform gave no workload access token.');
  return workloadAccessToken;
}
