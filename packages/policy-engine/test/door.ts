import { type PolicySource, type Principal, toolSchema } from '../src/index.ts';

export const gateway = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/refunds-1a2b3c4d5e';

export const finance: Principal = { type: 'OAuthUser', id: 'fay', tags: { team: 'finance' } };
export const support: Principal = { type: 'OAuthUser', id: 'sam', tags: { team: 'support' } };

/** One target of two tools, which most tests speak of. */
export const targets = [
  {
    name: 'Refunds',
    tools: [
      {
        name: 'refund',
        inputSchema: {
          type: 'object',
          properties: {
            amount: { type: 'integer' },
            rate: { type: 'number' },
            reason: { type: ['string', 'null'] },
            items: { type: 'array', items: { type: 'string' } },
            customer: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
          },
          required: ['amount'],
        },
      },
      {
        name: 'approve',
        inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
        outputSchema: { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] },
      },
    ],
  },
];

export const schema = toolSchema({ gatewayArn: gateway, principals: ['OAuthUser'], targets });

export function policy(id: string, text: string, rest: Partial<PolicySource> = {}): PolicySource {
  return { id, text, language: 'cedar', mode: 'ACTIVE', ...rest };
}

/** A scope of one of the two tools. */
export function on(tool: 'refund' | 'approve'): string {
  return `principal, action == AgentCore::Action::"Refunds___${tool}", resource == AgentCore::Gateway::"${gateway}"`;
}
