import { PolicyEngine, toolSchema } from '../../packages/policy-engine/src/index.ts';
import { residentMemory } from './process-memory.ts';

/** Policies of one gateway, and how often they decide. */
const POLICIES = 100;
const DECISIONS = 1_000;

const resource = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/footprint-1a2b3c4d5e';
const inputSchema = { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] };
const resident = async (): Promise<number> => (await residentMemory(process.pid)).resident;

const before = await resident();
const engine = new PolicyEngine();
const { loaded, problems } = await engine.load({
  id: 'footprint',
  schema: toolSchema({
    gatewayArn: resource,
    principals: ['OAuthUser'],
    targets: [{ name: 'T', tools: [{ name: 'refund', inputSchema }] }],
  }),
  policies: Array.from({ length: POLICIES }, (_, at) => ({
    ...{ id: `p${at}`, language: 'cedar' as const, mode: 'ACTIVE' as const },
    text: `permit(principal, action == AgentCore::Action::"T___refund", resource == AgentCore::Gateway::"${resource}") when { context.input.amount < ${at} };`,
  })),
});
if (!loaded) throw new Error(JSON.stringify(problems));
const principal = { type: 'OAuthUser' as const, id: 'footprint', tags: {} };
for (let turn = 0; turn < DECISIONS; turn++)
  await engine.decide('footprint', {
    principal,
    action: 'T___refund',
    resource,
    input: { amount: 5 },
    now: new Date(),
  });
process.stdout.write(String((await resident()) - before));
await engine.close();
