import type { ErrorKind } from '@agentplatform/contract';

/** What requests fail with that go through a gateway by HTTP, beside the catalogue. */
export const gatewayErrors = {
  BadGatewayException: {
    ...{ status: 502, fault: 'server', origin: 'platform' },
    meaning: 'The server behind a target of a gateway cannot be reached, or does not answer as HTTP has it.',
    remedy: 'Look whether the server is up, and at the target’s endpoint.',
  },
  GatewayTimeoutException: {
    ...{ status: 504, fault: 'server', origin: 'platform' },
    meaning: 'The server behind a target of a gateway did not begin to answer in time.',
    remedy: 'Try again, or look at what that server does.',
  },
} as const satisfies Readonly<Record<string, ErrorKind>>;
