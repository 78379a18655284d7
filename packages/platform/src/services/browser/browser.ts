import type { control } from '@agentplatform/contract';
import type { RecordingPlace } from './recording/recordings.ts';

/** The browser that every account has without making one. */
export const BUILT_IN = 'aws.browser.v1';

/** In the table `resources`. */
export const BROWSER_KIND = 'browser';

/** What a browser was made with, beside its name. */
export interface BrowserDefinition {
  description: string | undefined;
  executionRoleArn: string | undefined;
  network: control.BrowserNetworkConfiguration;
  /** Where its sessions are recorded; absent for nowhere. */
  recording?: RecordingPlace | undefined;
}

/** A browser: what its sessions may reach, and in whose name. */
export interface Browser extends BrowserDefinition {
  arn: string;
  id: string;
  /** Account that owns it; the built-in one belongs to whoever asks. */
  accountId: string;
  name: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

/** ARN of a browser by its id, or of all of an account's own by `*`. */
export function browserArn(id: string, region: string, accountId: string): string {
  return id === BUILT_IN
    ? `arn:aws:bedrock-agentcore:${region}:aws:browser/${id}`
    : `arn:aws:bedrock-agentcore:${region}:${accountId}:browser-custom/${id}`;
}

/** The id in what a caller names, which may be an id or an ARN. */
export function browserIdOf(named: string): string {
  return named.startsWith('arn:') ? named.slice(named.lastIndexOf('/') + 1) : named;
}
