/** What OpenAI calls an error, by its status. */
const OPENAI_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
};

/** What Anthropic calls an error, by its status. */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  ...OPENAI_TYPES,
  413: 'request_too_large',
  503: 'overloaded_error',
};

/** An error as clients of OpenAI's formats know it. */
export function openaiError(status: number, message: string, code: string): object {
  return { error: { message, type: OPENAI_TYPES[status] ?? ofEither(status, 'server_error'), param: null, code } };
}

/** An error as clients of Anthropic's messages know it. */
export function anthropicError(status: number, message: string, requestId: string): object {
  const type = ANTHROPIC_TYPES[status] ?? ofEither(status, 'api_error');
  return { type: 'error', error: { type, message }, request_id: requestId };
}

function ofEither(status: number, ours: string): string {
  return status < 500 ? 'invalid_request_error' : ours;
}
