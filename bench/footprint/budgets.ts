/** What a piece may take of memory, in MB (10^6 bytes) of resident memory of its processes. */
export interface Budget {
  readonly piece: string;
  /** At rest, half a minute after the start; of what is there only while it is used, while it is used. */
  readonly idleMb: number;
  /** The most at any moment of a start. */
  readonly peakMb?: number;
  /** Whether it is measured by this benchmark; what is not stands here for whoever builds it. */
  readonly measured: boolean;
}

/** Of every piece: those that stand, and those that are to come. A piece that comes is measured beside its number. */
export const budgets = {
  platform: { piece: 'The platform as it stands: server and supervisor', idleMb: 400, peakMb: 600, measured: true },
  embeddings: { piece: 'Embeddings, only while they are used', idleMb: 250, peakMb: 250, measured: true },
  policy: { piece: 'Policy', idleMb: 60, measured: false },
  later: { piece: 'Each other later piece', idleMb: 20, measured: false },
} as const satisfies Record<string, Budget>;
