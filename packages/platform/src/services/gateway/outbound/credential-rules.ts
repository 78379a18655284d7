import type { control } from '@agentplatform/contract';

/** What targets of one kind may be called with. */
export interface CredentialRules {
  types: readonly control.CredentialProviderType[];
  /** They are not called without any. */
  needed?: true;
  /** Whether the target names the service that requests are signed for, or it is known without, or it is known and may be named. */
  service: 'named' | 'known' | 'either';
}

/** The rules of target kinds that set no others. */
export const USUAL_CREDENTIALS: CredentialRules = {
  types: ['API_KEY', 'OAUTH', 'GATEWAY_IAM_ROLE', 'JWT_PASSTHROUGH'],
  service: 'known',
};

/** What of a target's credentials its kind does not take, to follow their field's name; undefined where it takes them. */
export function rulesProblem(
  configuration: control.CredentialProviderConfiguration | undefined,
  { types, needed, service }: CredentialRules,
): string | undefined {
  const known = types.join(', ');
  if (!configuration) return needed ? `are required for this kind of target: one of ${known}` : undefined;
  const { credentialProviderType: type } = configuration;
  const credentialProvider: control.CredentialProvider | Record<string, never> = configuration.credentialProvider ?? {};
  if (!types.includes(type)) return `of type ${type} are not for this kind of target; it takes ${known}`;
  const { iamCredentialProvider: iam, ...others } = credentialProvider;
  if (type !== 'GATEWAY_IAM_ROLE' && type !== 'CALLER_IAM_CREDENTIALS')
    return iam && `of type ${type} must have no credentialProvider.iamCredentialProvider`;
  const other = Object.keys(others)[0];
  if (other !== undefined) return `of type ${type} must have no credentialProvider.${other}`;
  if (service === 'named' && !iam)
    return `of type ${type} must have credentialProvider.iamCredentialProvider, with the service that requests are signed for`;
  if (service === 'known' && iam)
    return `of type ${type} must have no credentialProvider.iamCredentialProvider here: the service is known`;
  return undefined;
}
