import { existsSync } from 'node:fs';
import path from 'node:path';
import { ProblemError } from '../problem.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Path of a Chromium on this machine: HANDSET_CHROMIUM, else the usual places. Throws `chromium-missing`. */
export function findChromium(env: Env, platform: NodeJS.Platform = process.platform): string {
  const wanted = env.HANDSET_CHROMIUM;
  if (wanted) {
    if (existsSync(wanted)) return wanted;
    throw new ProblemError('chromium-missing', { message: `HANDSET_CHROMIUM names ${wanted}, which is not there.` });
  }
  const found = usualPlaces(env, platform).find((file) => existsSync(file));
  if (found === undefined)
    throw new ProblemError('chromium-missing', { message: 'No Chromium was found on this machine.' });
  return found;
}

function usualPlaces(env: Env, platform: NodeJS.Platform): string[] {
  if (platform === 'win32') {
    const folders = [env.PROGRAMFILES, env['PROGRAMFILES(X86)'], env.LOCALAPPDATA].filter((f) => f !== undefined);
    const programs = [
      'Chromium/Application/chrome.exe',
      'Google/Chrome/Application/chrome.exe',
      'Microsoft/Edge/Application/msedge.exe',
    ];
    return folders.flatMap((folder) => programs.map((program) => path.win32.join(folder, program)));
  }
  if (platform === 'darwin') {
    return ['Chromium', 'Google Chrome', 'Microsoft Edge'].map(
      (name) => `/Applications/${name}.app/Contents/MacOS/${name}`,
    );
  }
  const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'microsoft-edge'];
  const folders = (env.PATH ?? '/usr/bin:/bin').split(':').filter((folder) => folder.startsWith('/'));
  return names.flatMap((name) => folders.map((folder) => path.posix.join(folder, name)));
}
