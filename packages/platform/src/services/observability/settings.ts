import { integer, setting } from '../../config/setting.ts';
import type { Content } from './span-row.ts';

/** Whether content is kept: of agents in general, and of those that are named. */
export interface ContentRules {
  usual: Content;
  of: ReadonlyMap<string, Content>;
}

export const observability = {
  content: setting<string>(
    'on|redacted|off[,ARN=on|redacted|off]',
    {
      about:
        'Whether messages, prompts and the input and output of tools in spans of agents are stored: on = as they are sent, redacted = with secrets blanked, off = not at all. After the first word, single runtimes by ARN.',
      default: 'redacted',
    },
    (value) => {
      contentRules(value);
      return String(value);
    },
  ),
  keepDays: integer({ about: 'Number of days that spans of agents are kept.', default: 14, min: 1, max: 3650 }),
  spansPerSecond: integer({
    about:
      'Most spans per second that are stored of one agent. Further ones are refused and counted, so that those of other agents keep coming. 0 = no limit.',
    default: 2000,
    min: 0,
    max: 1_000_000,
  }),
};

const WORDS: readonly Content[] = ['on', 'redacted', 'off'];

/** What the setting says. Throws an Error whose message completes `observability.content …`. */
export function contentRules(value: unknown): ContentRules {
  if (typeof value !== 'string')
    throw new Error('must be on, redacted or off, and then ARN=on, ARN=redacted or ARN=off');
  const [first = '', ...rest] = value.split(',').map((part) => part.trim());
  const of = rest.map((part): [string, Content] => {
    const at = part.lastIndexOf('=');
    return [part.slice(0, Math.max(0, at)), word(part.slice(at + 1))];
  });
  for (const [arn] of of) if (!arn.startsWith('arn:')) throw new Error('must name runtimes by ARN, as in off,arn:…=on');
  return { usual: word(first), of: new Map(of) };
}

function word(text: string): Content {
  const found = WORDS.find((one) => one === text);
  if (!found) throw new Error(`must be one of ${WORDS.join(', ')}, not ${JSON.stringify(text)}`);
  return found;
}
