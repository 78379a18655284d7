const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/** What is under way on each output that is a terminal, which has one line for all of it. */
const underWay = new WeakMap();

/**
 * Runs `work` and, once it takes longer than a second, shows on `out` what is going on and for how long: in place on a
 * terminal, as a line every ten seconds elsewhere. Never on stdout, which belongs to the task.
 * @template T
 * @param {string} title
 * @param {() => T | Promise<T>} work
 * @param {{ isTTY?: boolean, columns?: number, write(text: string): unknown }} out
 * @returns {Promise<T>}
 */
export async function withProgress(title, work, out = process.stderr) {
  const began = Date.now();
  const elapsed = () => `${Math.round((Date.now() - began) / 1000)} s`;
  let shown = false;
  let ticks = 0;
  const show = () => {
    ticks += 1;
    lines.add(line);
    // A line that wraps could not be taken back.
    const all = [...lines]
      .map((one) => one())
      .join(' · ')
      .slice(0, (out.columns ?? Infinity) - 3);
    if (out.isTTY) out.write(`\r\x1b[2K${frames[ticks % frames.length]} ${all}`);
    else if (ticks === 1 || ticks % 40 === 0) out.write(`… ${title}${ticks === 1 ? '' : `, ${elapsed()}`}\n`);
    shown = true;
  };
  const line = () => `${title} … ${elapsed()}`;
  const lines = underWay.get(out) ?? new Set();
  underWay.set(out, lines);
  let every;
  const first = setTimeout(() => {
    show();
    every = setInterval(show, 250);
  }, 1000);
  const end = (mark) => {
    clearTimeout(first);
    clearInterval(every);
    lines.delete(line);
    if (out.isTTY && shown) out.write('\r\x1b[2K');
    if (shown) out.write(`${mark} ${title}, ${elapsed()}\n`);
  };
  try {
    const result = await work();
    end('✓');
    return result;
  } catch (error) {
    end('✗');
    throw error;
  }
}
