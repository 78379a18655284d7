/** Addresses that no page and no program has the browser open: the files of its sandbox, and its own inner pages. */
const CLOSED = ['file://*', 'chrome://*', 'chrome-untrusted://*', 'devtools://*', 'view-source:*'];

/** What holds for every session's Chromium, as its enterprise policies: nobody who drives it can change them. */
export const MANAGED_POLICY = {
  URLBlocklist: CLOSED,
  // What sessions are driven by.
  RemoteDebuggingAllowed: true,
  DeveloperToolsAvailability: 1,
  // Nothing of a session goes to the makers of Chromium.
  MetricsReportingEnabled: false,
  SyncDisabled: true,
  BrowserSignin: 0,
  SearchSuggestEnabled: false,
  UrlKeyedAnonymizedDataCollectionEnabled: false,
  TranslateEnabled: false,
  // Nothing of it outlives the last window.
  BackgroundModeEnabled: false,
  PromptForDownloadLocation: false,
} as const;
