const DAY_MS = 86_400_000;
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];
const NUMBERS = [
  'zero',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
];
const COUNT = `\\d{1,3}|an?|${NUMBERS.slice(1).join('|')}`;

const PHRASE = new RegExp(
  [
    '\\b(?:day before yesterday|day after tomorrow|yesterday|today|tonight|tomorrow|this (?:morning|afternoon|evening)|last night)\\b',
    `\\b(?:${COUNT}) (?:days?|weeks?|months?|years?) ago\\b`,
    `\\bin (?:${COUNT}) (?:days?|weeks?|months?|years?)\\b`,
    '\\b(?:last|next) (?:week|month|year)\\b',
    `\\b(?:last|next) (?:${WEEKDAYS.join('|')})\\b`,
  ].join('|'),
  'gi',
);

/**
 * Writes behind every relative time in a text what it means, seen from `at` (in UTC): "yesterday [2024-05-02]". A week,
 * month or year is as exact as it was said: "last month [2024-04]".
 */
export function resolveTimes(text: string, at: Date): string {
  return text.replace(PHRASE, (phrase, offset: number) => {
    const said = /^\s*\[(?:week of )?\d{4}/.test(text.slice(offset + phrase.length));
    const moment = said ? undefined : momentOf(phrase.toLowerCase(), at);
    return moment === undefined ? phrase : `${phrase} [${moment}]`;
  });
}

const FIXED: Record<string, number> = {
  'day before yesterday': -2,
  yesterday: -1,
  'last night': -1,
  today: 0,
  tonight: 0,
  tomorrow: 1,
  'day after tomorrow': 2,
};

function momentOf(phrase: string, at: Date): string | undefined {
  const fixed = phrase.startsWith('this ') ? 0 : FIXED[phrase];
  if (fixed !== undefined) return day(at, fixed);
  const [first = '', second = '', third] = phrase.split(' ');
  if (third === 'ago') return moved(at, -countOf(first), second);
  if (first === 'in') return moved(at, countOf(second), third ?? '');
  const direction = first === 'next' ? 1 : -1;
  const weekday = WEEKDAYS.indexOf(second);
  if (weekday < 0)
    return second === 'week'
      ? `week of ${day(at, 7 * direction - ((at.getUTCDay() + 6) % 7))}`
      : moved(at, direction, second);
  const ahead = (weekday - at.getUTCDay() + 7) % 7;
  return direction > 0 ? day(at, ahead === 0 ? 7 : ahead) : day(at, ahead === 0 ? -7 : ahead - 7);
}

function moved(at: Date, count: number, unit: string): string {
  if (unit.startsWith('day')) return day(at, count);
  if (unit.startsWith('week')) return day(at, 7 * count);
  const years = unit.startsWith('year');
  const moment = new Date(
    Date.UTC(at.getUTCFullYear() + (years ? count : 0), at.getUTCMonth() + (years ? 0 : count), 1),
  );
  return years ? String(moment.getUTCFullYear()) : moment.toISOString().slice(0, 7);
}

function day(at: Date, days: number): string {
  return new Date(at.getTime() + days * DAY_MS).toISOString().slice(0, 10);
}

function countOf(word: string): number {
  const named = NUMBERS.indexOf(word);
  return word === 'a' || word === 'an' ? 1 : named >= 0 ? named : Number(word);
}
