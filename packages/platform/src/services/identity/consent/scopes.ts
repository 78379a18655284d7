import type { control } from '@agentplatform/contract';

type Words = Readonly<Record<string, string>>;

/** OpenID Connect Core 1.0, section 5.4 and 11. */
const OPENID: Words = {
  openid: 'Know who you are',
  profile: 'See your name and the rest of your profile',
  email: 'See your email address',
  address: 'See your postal address',
  phone: 'See your telephone number',
  offline_access: 'Keep this access while you are away',
};

const GOOGLE = 'https://www.googleapis.com/auth/';

/** What scopes allow, after the documentation of their vendors. Those of a vendor's own are told for that vendor alone. */
const VENDOR_SCOPES: Readonly<Partial<Record<control.CredentialProviderVendorType, Words>>> = {
  GoogleOauth2: {
    [`${GOOGLE}userinfo.email`]: 'See your email address',
    [`${GOOGLE}userinfo.profile`]: 'See your name and the rest of your profile',
    [`${GOOGLE}calendar`]: 'See, change, share and delete all your calendars',
    [`${GOOGLE}calendar.readonly`]: 'See your calendars',
    [`${GOOGLE}calendar.events`]: 'See and change events in all your calendars',
    [`${GOOGLE}calendar.events.readonly`]: 'See events in all your calendars',
    [`${GOOGLE}drive`]: 'See, change, create and delete all your files in Google Drive',
    [`${GOOGLE}drive.readonly`]: 'See and download all your files in Google Drive',
    [`${GOOGLE}drive.file`]: 'See, change, create and delete those files in Google Drive that you use with this app',
    [`${GOOGLE}drive.metadata.readonly`]: 'See information about your files in Google Drive',
    [`${GOOGLE}gmail.readonly`]: 'Read your email messages and settings',
    [`${GOOGLE}gmail.send`]: 'Send email as you',
    [`${GOOGLE}gmail.modify`]: 'Read, write and send email, and move it to the trash',
    [`${GOOGLE}gmail.compose`]: 'Write drafts and send email',
    'https://mail.google.com/': 'Read, write, send and delete for good all your email',
    [`${GOOGLE}spreadsheets`]: 'See, change, create and delete all your spreadsheets',
    [`${GOOGLE}spreadsheets.readonly`]: 'See all your spreadsheets',
    [`${GOOGLE}documents`]: 'See, change, create and delete all your documents in Google Docs',
    [`${GOOGLE}documents.readonly`]: 'See all your documents in Google Docs',
    [`${GOOGLE}contacts`]: 'See, change, download and delete your contacts',
    [`${GOOGLE}contacts.readonly`]: 'See and download your contacts',
  },
  GithubOauth2: {
    repo: 'Read and change all your repositories, private ones too',
    public_repo: 'Read and change your public repositories',
    'repo:status': 'Read and set the statuses of commits',
    'repo:invite': 'Accept invitations to repositories for you',
    'read:org': 'See your organizations and teams',
    'write:org': 'See and change your memberships of organizations',
    'admin:org': 'Manage your organizations and teams',
    'read:user': 'Read your profile',
    'user:email': 'Read your email addresses',
    'user:follow': 'Follow and unfollow people for you',
    user: 'Read and change your profile',
    gist: 'Create and change gists',
    notifications: 'Read your notifications, and mark them as read',
    workflow: 'Add and change workflow files of GitHub Actions',
    delete_repo: 'Delete repositories that you administer',
    'read:packages': 'Download packages',
    'write:packages': 'Upload packages',
  },
  SlackOauth2: {
    'chat:write': 'Send messages as you',
    'channels:read': 'See the list of public channels',
    'channels:history': 'Read messages in public channels that you are in',
    'groups:read': 'See the list of your private channels',
    'groups:history': 'Read messages in your private channels',
    'im:read': 'See the list of your direct messages',
    'im:history': 'Read your direct messages',
    'mpim:history': 'Read your group direct messages',
    'users:read': 'See the people in your workspace',
    'users:read.email': 'See the email addresses of people in your workspace',
    'files:read': 'See files in your channels and conversations',
    'files:write': 'Upload, change and delete files as you',
    'search:read': 'Search your workspace',
    'reactions:write': 'Add and change emoji reactions as you',
  },
  MicrosoftOauth2: {
    'User.Read': 'Sign you in and read your profile',
    'Mail.Read': 'Read your mail',
    'Mail.ReadWrite': 'Read, change and delete your mail',
    'Mail.Send': 'Send mail as you',
    'Calendars.Read': 'Read your calendars',
    'Calendars.ReadWrite': 'Read, change and delete events in your calendars',
    'Contacts.Read': 'Read your contacts',
    'Contacts.ReadWrite': 'Read, change and delete your contacts',
    'Files.Read': 'Read your files',
    'Files.ReadWrite': 'Read, change, create and delete your files',
    'Files.Read.All': 'Read all files that you can reach',
    'Files.ReadWrite.All': 'Read, change, create and delete all files that you can reach',
    'Sites.Read.All': 'Read documents and lists in all site collections',
    'Tasks.ReadWrite': 'Read, change, create and delete your tasks',
    'Chat.Read': 'Read your chats in Teams',
    'ChannelMessage.Send': 'Send messages to channels as you',
    'Team.ReadBasic.All': 'See the teams that you are in',
  },
  SalesforceOauth2: {
    api: 'Read and change your data through the APIs',
    refresh_token: 'Keep this access while you are away',
    full: 'Do everything that you can do',
    id: 'See your name and address of identity',
    web: 'Use your session in the browser',
  },
  AtlassianOauth2: {
    'read:me': 'See your profile',
    'read:jira-user': 'See people in Jira',
    'read:jira-work': 'Read projects and issues in Jira',
    'write:jira-work': 'Create and change issues in Jira',
    'read:confluence-content.all': 'Read everything in Confluence that you can read',
    'write:confluence-content': 'Create and change pages in Confluence',
  },
  SpotifyOauth2: {
    'user-read-email': 'See your email address',
    'user-read-private': 'See your subscription and country',
    'user-read-playback-state': 'See what you play and on which device',
    'user-modify-playback-state': 'Control what you play',
    'user-library-read': 'See what you have saved',
    'user-library-modify': 'Change what you have saved',
    'playlist-read-private': 'See your private playlists',
    'playlist-modify-public': 'Change your public playlists',
    'playlist-modify-private': 'Change your private playlists',
  },
};

/** Scopes of Microsoft Graph are also written with its address in front. */
const GRAPH = 'https://graph.microsoft.com/';

/** What a scope allows, in words for a person; undefined where that is not known, and the scope must do. */
export function scopeWords(vendor: control.CredentialProviderVendorType, scope: string): string | undefined {
  const short = vendor === 'MicrosoftOauth2' && scope.startsWith(GRAPH) ? scope.slice(GRAPH.length) : scope;
  const words = VENDOR_SCOPES[vendor] ?? {};
  if (Object.hasOwn(words, short)) return words[short];
  return Object.hasOwn(OPENID, short) ? OPENID[short] : undefined;
}
