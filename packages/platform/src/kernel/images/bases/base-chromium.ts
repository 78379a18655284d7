import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { orMissing } from '../../system-error.ts';
import { textFile } from '../formats/layer.ts';
import { type Planned, planFile } from '../formats/planned.ts';
import { planTree } from './base-system.ts';
import { inUsr, sharedLibraries } from './shared-libraries.ts';

/** Where distributions put the program itself, beside what it reads at its start. */
const PROGRAMS = ['/usr/lib/chromium/chromium', '/usr/lib64/chromium-browser/chromium-browser'];
/** What no browser without a screen needs: the tools of developers of graphics drivers. */
const LEFT_OUT = /validation|mock_icd|\.TOC$/;
/** Libraries of NSS that it loads by their names. */
const LOADED_BY_NAME = ['libsoftokn3.so', 'libfreebl3.so', 'libfreeblpriv3.so', 'libnssckbi.so', 'libnssdbm3.so'];
const FONTS = ['/usr/share/fonts/truetype', '/usr/share/fonts/opentype'];
/** The place that the program has in an image, whatever the distribution. */
const CHROMIUM_DIR = 'usr/lib/chromium';

const FONT_SETTINGS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <cachedir>/tmp/fontconfig</cachedir>
  <alias><family>sans-serif</family><prefer><family>Liberation Sans</family><family>DejaVu Sans</family></prefer></alias>
  <alias><family>serif</family><prefer><family>Liberation Serif</family><family>DejaVu Serif</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>Liberation Mono</family><family>DejaVu Sans Mono</family></prefer></alias>
  <alias binding="same"><family>Arial</family><accept><family>Liberation Sans</family></accept></alias>
  <alias binding="same"><family>Helvetica</family><accept><family>Liberation Sans</family></accept></alias>
  <alias binding="same"><family>Times New Roman</family><accept><family>Liberation Serif</family></accept></alias>
  <alias binding="same"><family>Courier New</family><accept><family>Liberation Mono</family></accept></alias>
</fontconfig>
`;

/** The program of the distribution's Chromium on this machine; undefined when it is not installed. */
export async function findChromium(): Promise<string | undefined> {
  for (const program of PROGRAMS) {
    const found = await orMissing(realpath(program));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Chromium as the distribution's packages have it, its libraries and the machine's fonts, with the settings of fonts that go with them. */
export async function planChromium(program: string, system: ReadonlySet<string>): Promise<Planned[]> {
  const { libraries } = await sharedLibraries([program]);
  const loaded = new Map(libraries.map((library) => [library.path, library.source]));
  const nss = libraries.find(({ path }) => path.endsWith('/libnss3.so'))?.source;
  for (const name of nss === undefined ? [] : LOADED_BY_NAME) {
    // Debian keeps them in a folder beside the library that loads them, others right beside it.
    for (const dir of [dirname(nss ?? ''), join(dirname(nss ?? ''), 'nss')]) {
      const source = await orMissing(realpath(join(dir, name)));
      if (source !== undefined) loaded.set(`${dirname(inUsr(nss ?? ''))}/${name}`, source);
    }
  }
  const missing = [...loaded].filter(([path]) => !system.has(path));
  const fonts = await Promise.all(FONTS.map((dir) => planTree(dir, dir.slice(1))));
  return [
    ...(await planTree(dirname(program), CHROMIUM_DIR, (path) => path !== basename(program) && !LEFT_OUT.test(path))),
    await planFile(`${CHROMIUM_DIR}/chromium`, program, 0o755),
    ...(await Promise.all(missing.map(([path, source]) => planFile(path, source, 0o755)))),
    ...fonts.flat(),
    { entry: textFile('etc/fonts/fonts.conf', FONT_SETTINGS) },
  ];
}
