import type { Json, ModelRequest } from '../../../kernel/models/index.ts';
import type { Redaction } from './guard-rails.ts';

/** Each finds what it looks for in time in proportion to the text, whatever that is. */
const PATTERNS: Record<Redaction, RegExp> = {
  // Before others: what is in it may look like them.
  secret:
    /(?<![\w-])(?:sk-[\w-]{16,}|gh[oprsu]_\w{20,}|xox[abprs]-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,})/g,
  email: /[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}/g,
  card: /(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)/g,
  phone: /(?<![\w+])\+\d(?:[ ().-]{0,2}\d){6,14}(?!\d)/g,
};

/** The text without what the kinds name: `[email]` in place of an address, and so on. */
export function redacted(text: string, kinds: readonly Redaction[]): string {
  return kinds.reduce((rest, kind) => {
    const mark = (found: string): string => (kind === 'card' && !isCard(found) ? found : `[${kind}]`);
    return rest.replace(PATTERNS[kind], mark);
  }, text);
}

/** The same of each text of a request but of what its provider must get back unchanged. */
export function redactedRequest(request: ModelRequest, kinds: readonly Redaction[]): ModelRequest {
  const { system, messages } = request;
  const partOf = <Part extends Parts>(part: Part): Part => {
    if ('signature' in part && part.signature !== undefined) return part;
    if (part.type === 'text' || part.type === 'reasoning') return { ...part, text: redacted(part.text, kinds) };
    if (part.type === 'tool-call') return { ...part, input: redactedJson(part.input, kinds) };
    if (part.type === 'json') return { ...part, value: redactedJson(part.value, kinds) };
    return part.type === 'tool-result' ? { ...part, content: part.content.map(partOf) } : part;
  };
  return {
    ...request,
    ...(system !== undefined && { system: redacted(system, kinds) }),
    messages: messages.map((message) =>
      message.role === 'user'
        ? { ...message, content: message.content.map(partOf) }
        : { ...message, content: message.content.map(partOf) },
    ),
  };
}

type Parts = ModelRequest['messages'][number]['content'][number] | { type: 'json'; value: Json };

/** The same of each text in a value. */
export function redactedJson(value: Json, kinds: readonly Redaction[]): Json {
  if (typeof value === 'string') return redacted(value, kinds);
  if (Array.isArray(value)) return value.map((one) => redactedJson(one, kinds));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, one === undefined ? null : redactedJson(one, kinds)]),
  );
}

/** By its check digit (ISO/IEC 7812-1). */
function isCard(text: string): boolean {
  const digits = text.replace(/\D/g, '').split('').map(Number).reverse();
  const sum = digits.reduce((total, digit, at) => {
    const twice = at % 2 === 0 ? digit : digit * 2;
    return total + (twice > 9 ? twice - 9 : twice);
  }, 0);
  return sum % 10 === 0;
}
