/** Of a call of a target in milliseconds, as the original has it. */
export const CALL_MS = 300_000;
/** Of what is waited for within a call, such as one answer of a backend: longer, so that the call says what took too long. */
export const WITHIN_CALL_MS = CALL_MS + 10_000;
/** After so long no call is under way any more, whatever became of it. */
export const AFTER_CALL_MS = CALL_MS + 30_000;
