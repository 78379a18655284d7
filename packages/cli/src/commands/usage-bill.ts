import { columns, harmless, note, print, type Terminal } from '../terminal/terminal.ts';
import { fieldOf, listIn, textIn } from './iam-request.ts';

/** Shows what `/_platform/usage` answered: a row for each line and one for the total. */
export function showBill(terminal: Terminal, bill: unknown, as: 'csv' | 'table'): void {
  const by = textIn(bill, 'by');
  const lines = listIn(bill, 'lines');
  const total = fieldOf(bill, 'total');
  if (as === 'csv') {
    const units = namesIn(total);
    print(terminal, [by, ...units, 'dollars'].join(','));
    for (const line of lines)
      print(
        terminal,
        [quoted(textIn(line, 'key')), ...units.map((unit) => unitIn(line, unit)), textIn(line, 'dollars')].join(','),
      );
  } else {
    const { from, to } = { from: textIn(bill, 'from'), to: textIn(bill, 'to') };
    const rows = lines.map((line) => [harmless(textIn(line, 'key')) || '-', ...figures(line)]);
    const heading = [by.toUpperCase(), 'GB-HOURS', 'VCPU-HOURS', 'COUNTED', 'DOLLARS'];
    for (const line of columns([heading, ...rows, [`total ${from} to ${to}`, ...figures(total)]]))
      print(terminal, line);
  }
  if (fieldOf(bill, 'more') === true)
    note(terminal, `There are more lines: these are the newest ${lines.length}. The total has all.`);
}

const KIB_HOURS = 1_048_576 * 3600;
const MICRO_HOURS = 3_600_000_000;
const TIMED = ['memory-kib-seconds', 'cpu-microseconds'];

function figures(use: unknown): string[] {
  const counted = namesIn(use).filter((unit) => !TIMED.includes(unit));
  return [
    (Number(unitIn(use, 'memory-kib-seconds')) / KIB_HOURS).toFixed(6),
    (Number(unitIn(use, 'cpu-microseconds')) / MICRO_HOURS).toFixed(6),
    counted.map((unit) => `${unitIn(use, unit)} ${unit}`).join(', ') || '-',
    textIn(use, 'dollars'),
  ];
}

function namesIn(use: unknown): string[] {
  const units = fieldOf(use, 'units');
  return typeof units === 'object' && units !== null ? Object.keys(units).sort() : [];
}

const unitIn = (use: unknown, unit: string): string => textIn(fieldOf(use, 'units'), unit) || '0';

/** As RFC 4180 has it; what a spreadsheet would take for a formula begins with an apostrophe. */
function quoted(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
