/** What a piece may take of memory, in MB (10^6 bytes) of resident memory of its processes. */
export interface Budget {
  readonly piece: string;
  /** At rest, half a minute after the start; of what is there only while it is used, while it is used. */
  readonly idleMb: number;
  /** The most at any moment of a start. */
  readonly peakMb?: number;
}

/** Of every piece. */
export const budgets = {
  platform: { piece: 'The platform as it stands: server and supervisor', idleMb: 400, peakMb: 600 },
  embeddings: { piece: 'Embeddings, only while they are used', idleMb: 250, peakMb: 250 },
  policy: { piece: 'Policy, with 100 policies that decide', idleMb: 60 },
} as const satisfies Record<string, Budget>;

/** Each service, of a piece that stands or of one to come. */
export const serviceBudget = (name: string): Budget => ({ piece: `The service ${name}, loaded`, idleMb: 20 });
