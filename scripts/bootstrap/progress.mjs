const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/**
 * Runs `work` and, once it takes longer than a second, shows on `out` what is going on and for how long: in place on a
 * terminal, as a line every ten seconds elsewhere. Never on stdout, which belongs to the task.
 * @template T
 * @param {string} title
 * @param {() => T | Promise<T>} work
 * @param {{ isTTY?: boolean, write(text: string): unknown }} out
 * @returns {Promise<T>}
 */
export async function withProgress(title, work, out = process.stderr) {
  const began = Date.now();
  const elapsed = () => `${Math.round((Date.now() - began) / 1000)} s`;
  let shown = false;
  let ticks = 0;
  const show = () => {
    ticks += 1;
    if (out.isTTY) out.write(`\r\x1b[2K${frames[ticks % frames.length]} ${title} … ${elapsed()}`);
    else if (ticks === 1 || ticks % 40 === 0) out.write(`… ${title}${ticks === 1 ? '' : `, ${elapsed()}`}\n`);
    shown = true;
  };
  let every;
  const first = setTimeout(() => {
    show();
    every = setInterval(show, 250);
  }, 1000);
  const end = (mark) => {
    clearTimeout(first);
    clearInterval(every);
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
