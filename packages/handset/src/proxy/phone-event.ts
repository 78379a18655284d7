/** What a phone sends on a round trip. */
export interface PhoneEvent {
  /** Number of the element, as its `data-n` says; 0 for the page. */
  readonly target: number;
  readonly type: string;
  /** Action texts that were answered on the phone since the last document, in order. */
  readonly locals: readonly string[];
  /**
   * Fields by name with all that was sent of each: `f<number>` with values (of a box or a list of choices an empty one besides),
   * `g<number>` (radio buttons of one name) with numbers of the chosen ones.
   */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  /** Null from a phone that runs no script. */
  readonly scroll: number | null;
}

const TYPES = /^(click|submit|change|longpress|swipe-(left|right|up|down)|key-(left|right|up|down|select))$/;
const MAX_LOCALS = 200;
const MAX_FIELDS = 200;

/** Decode an event from its form fields; undefined if it is none. */
export function parsePhoneEvent(form: URLSearchParams): PhoneEvent | undefined {
  const match = /^(\d{1,9}):([a-z-]+)$/.exec(form.get('on') ?? '');
  if (!match || !TYPES.test(match[2] ?? '')) return undefined;
  const fields = new Map<string, string[]>();
  for (const [name, value] of form) {
    const isField = /^f\d{1,9}$/.test(name) || (/^g\d{1,9}$/.test(name) && /^\d{1,9}$/.test(value));
    if (!isField) continue;
    const values = fields.get(name);
    if (values) values.push(value);
    else if (fields.size < MAX_FIELDS) fields.set(name, [value]);
  }
  const scroll = form.get('y');
  return {
    target: Number(match[1]),
    type: match[2] ?? '',
    locals: form.getAll('local').slice(-MAX_LOCALS),
    fields: Object.fromEntries(fields),
    scroll: scroll !== null && /^\d{1,6}$/.test(scroll) ? Number(scroll) : null,
  };
}
