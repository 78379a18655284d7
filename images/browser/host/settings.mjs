// What a session asks of its browser, as the platform sends it.
export const DEFAULT_SETTINGS = Object.freeze({
  viewPort: { width: 1456, height: 819 },
  args: [],
  /** JSON files below /etc/chromium/policies, by folder and name. */
  policies: {},
  /** Other files of the session, base64 by path; all below /home/agent. */
  files: {},
  sandbox: true,
});

/** Throws with `status` 400 for what is no settings. */
export function readSettings(text) {
  const given = JSON.parse(text);
  if (typeof given !== 'object' || given === null) throw Object.assign(new Error('no settings'), { status: 400 });
  return { ...DEFAULT_SETTINGS, ...given };
}
