/** As runc and what is built like it say that the first process of a sandbox cannot be run, and as gVisor does. */
const WORDS = /\bexec: "|searching for executable "/;

/** The reason of a start that failed with those words of the runtime. */
export function startFailureReason(why: string): 'command' | 'failed' {
  return WORDS.test(why) ? 'command' : 'failed';
}
