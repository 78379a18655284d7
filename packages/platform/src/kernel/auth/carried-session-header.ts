/** By which a gateway tells a runtime of this platform the policy session of its caller, sealed by Policy. No agent sees it: what it says goes into the agent's workload access token. */
export const CARRIED_SESSION_HEADER = 'x-agentplatform-policy-session';
