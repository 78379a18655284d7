/** What the exit status of every command means; `docs/cli.md` and `--help` are made from this table. */
export const exitCodes = {
  ok: { status: 0, meaning: 'done' },
  failure: { status: 1, meaning: 'the command failed; the message says why' },
  usage: { status: 2, meaning: 'wrong flags, arguments, payload or agentcore.json' },
  unreachable: { status: 3, meaning: 'no platform was found, or it does not answer' },
  notFound: { status: 4, meaning: 'the named agent, session or other thing does not exist' },
  denied: { status: 5, meaning: 'no credentials, or they do not allow this' },
  agentFailed: { status: 6, meaning: 'the platform works, but the agent itself failed' },
  interrupted: { status: 130, meaning: 'ended by Ctrl-C' },
} as const;

export type ExitReason = keyof typeof exitCodes;
