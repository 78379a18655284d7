import type { CreateGatewayRequest } from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';

/** Flags that say who comes in. */
export interface AccessFlags {
  jwt?: string | undefined;
  audience?: string[] | undefined;
  client?: string[] | undefined;
  scope?: string[] | undefined;
  open?: true | undefined;
  signed?: true | undefined;
}

/** Who comes in, as a call says it; undefined where no flag does. Throws a `CliError` for flags that do not fit together. */
export function accessOf({
  jwt,
  audience,
  client,
  scope,
  open,
  signed,
}: AccessFlags): Pick<CreateGatewayRequest, 'authorizerType' | 'authorizerConfiguration'> | undefined {
  if ([jwt, open, signed].filter((one) => one !== undefined).length > 1)
    throw new CliError(
      'usage',
      'A gateway accepts tokens, signatures or everyone: give only one of --jwt, --signed and --open, not both.',
    );
  if (jwt === undefined && (audience ?? client ?? scope))
    throw new CliError('usage', '--audience, --client and --scope need --jwt.');
  if (open) return { authorizerType: 'NONE' };
  if (signed) return { authorizerType: 'AWS_IAM' };
  if (jwt === undefined) return undefined;
  const customJWTAuthorizer = {
    ...{ discoveryUrl: jwt, allowedAudience: audience, allowedClients: client, allowedScopes: scope },
  };
  return { authorizerType: 'CUSTOM_JWT', authorizerConfiguration: { customJWTAuthorizer } };
}
