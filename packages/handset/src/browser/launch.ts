import type { Browser } from 'playwright-core';
import { ProblemError } from '../problem.ts';
import { findChromium } from './find-chromium.ts';

export interface LaunchOptions {
  readonly headless: boolean;
  /** Let pages read other origins, as the devices' browsers do for widgets. */
  readonly webSecurity: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly args?: readonly string[];
}

const QUIET = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** What Playwright turns off: Chromium heeds one list, the last, so that ours repeats it. */
const PLAYWRIGHT_FEATURES = [
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
  'LensOverlay',
  'MediaRouter',
  'PaintHolding',
  'ThirdPartyStoragePartitioning',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'TcpPortRandomizationWin',
  'OptimizationHints',
  'NetworkTimeServiceQuerying',
  'AimEnabled',
  'PreconnectToSearch',
  'msForceBrowserSignIn',
  'msEdgeUpdateLaunchServicesPreferredVersion',
];
const LAUNCH_MS = 30_000;

/** Start Chromium with a new, empty profile that is deleted when it closes. Throws `chromium-missing`, `display-missing`. */
export async function launchChromium({ headless, webSecurity, env, args = [] }: LaunchOptions): Promise<Browser> {
  const executablePath = findChromium(env);
  if (!headless && process.platform === 'linux' && !env.DISPLAY && !env.WAYLAND_DISPLAY) {
    throw new ProblemError('display-missing', { message: 'There is no display to open a window on.' });
  }
  const { chromium } = await import('playwright-core');
  // Chromium refuses to run its sandbox as root, as in most containers.
  const isRoot = process.getuid?.() === 0;
  const open = webSecurity ? [] : ['--disable-web-security'];
  const isolation = webSecurity ? [] : ['IsolateOrigins', 'site-per-process', 'LocalNetworkAccessChecks'];
  // AutofillServerCommunication asks Chromium's makers about every form of a page.
  const off = [...PLAYWRIGHT_FEATURES, 'AutofillServerCommunication', ...isolation];
  try {
    return await chromium.launch({
      executablePath,
      headless,
      chromiumSandbox: !isRoot,
      timeout: LAUNCH_MS,
      handleSIGINT: false,
      handleSIGTERM: false,
      args: [...QUIET, `--disable-features=${off.join()}`, ...open, ...args],
    });
  } catch (error) {
    const [first] = String(error instanceof Error ? error.message : error).split('\n');
    throw new ProblemError('chromium-missing', { message: `${executablePath} does not start: ${first}` });
  }
}
