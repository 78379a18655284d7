import { setTimeout as sleep } from 'node:timers/promises';
import type { GetResourceOauth2TokenResponse } from '@aws-sdk/client-bedrock-agentcore';

/** Waits for a token in its own way, in the place of asking again and again. */
export interface TokenPoller {
  pollForToken(): Promise<string>;
}

export interface ConsentOptions {
  /** Gets the address at which the user consents, once for each consent. Default: it is printed to standard error. */
  onAuthUrl?: (url: string) => unknown;
  tokenPoller?: TokenPoller;
}

/** The user did not consent: he denied it, it failed at the provider, or it took too long. */
export class ConsentError extends Error {
  override readonly name = 'ConsentError';
}

/** What a call says beside what it asks for. */
interface Beside {
  sessionUri?: string;
  forceAuthentication?: boolean;
}

/** How time passes; tests have their own. */
export interface Waiting {
  now(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

const real: Waiting = {
  now: Date.now,
  sleep: (ms, signal) => sleep(ms, undefined, signal && { signal }),
};

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;
/** As long as a link counts. */
const PATIENCE_MS = 600_000;

/** Asks for a token until it is there, with growing pauses. Rejects with `ConsentError`, with what `ask` rejects with, and with the signal's reason. */
export async function tokenAfterConsent(
  ask: (beside: Beside) => Promise<GetResourceOauth2TokenResponse>,
  { onAuthUrl = printUrl, tokenPoller }: ConsentOptions,
  signal?: AbortSignal,
  waiting = real,
): Promise<string> {
  let beside: Beside = {};
  let told: string | undefined;
  const deadline = waiting.now() + PATIENCE_MS;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.5, LONGEST_PAUSE_MS)) {
    const { accessToken, authorizationUrl, sessionUri } = await ask(beside);
    if (accessToken) return accessToken;
    // A consent that was revoked has the status FAILED as well, with the address of a new one.
    if (!authorizationUrl)
      throw new ConsentError('The user denied it, or the consent failed at the provider. Ask again for a new link.');
    if (authorizationUrl !== told) await onAuthUrl(authorizationUrl);
    told = authorizationUrl;
    if (tokenPoller) return tokenPoller.pollForToken();
    if (waiting.now() + pause > deadline) throw new ConsentError('The user did not consent within 10 minutes.');
    // Only the first request begins anew.
    beside = { forceAuthentication: false, ...(sessionUri !== undefined && { sessionUri }) };
    await waiting.sleep(pause, signal);
  }
}

function printUrl(url: string): void {
  console.error(`Open this address to give the agent access: ${url}`);
}
