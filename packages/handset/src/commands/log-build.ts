import { plural, type Terminal } from '../cli/terminal.ts';
import type { BuildReport } from '../watch/watch-session.ts';

/** Say what one build of a command that watches did. `at`: when it ended. */
export function logBuild(terminal: Terminal, report: BuildReport, at: Date): void {
  const time = at.toTimeString().slice(0, 8);
  const milliseconds = Math.round(report.milliseconds);
  terminal.emit({ event: 'build', ...report, milliseconds });
  terminal.showProblems(report.problems);
  if (!report.ok) {
    const errors = report.problems.filter((p) => p.severity === 'error').length;
    terminal.say(`${time} not compiled: ${plural(errors, 'error')}; the last good build stays`);
    return;
  }
  const count = report.written.length + report.removed.length;
  const names = [...report.written, ...report.removed].filter((name) => !name.endsWith('.map'));
  const shown = count === 0 ? 'nothing changed' : count <= 6 ? names.join(', ') : plural(count, 'file');
  terminal.say(`${time} compiled in ${milliseconds}ms (${shown})`);
}
