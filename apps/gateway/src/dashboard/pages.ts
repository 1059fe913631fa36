import { Html, html } from './html.js';

/** Where the dashboard is mounted; bull-board builds its links from it. */
export const DASHBOARD_PATH = '/dashboard';
export const ICON_PATH = `${DASHBOARD_PATH}/favicon.svg`;

/** Three waves, one above the other. */
export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1f6feb"/><path d="M5 11q3.7-4 7.3 0t7.4 0 7.3 0M5 17q3.7-4 7.3 0t7.4 0 7.3 0M5 23q3.7-4 7.3 0t7.4 0 7.3 0" fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round"/></svg>`;

/** Colours of both themes, and what all pages have in common. */
const STYLE = `
  :root { color-scheme: light dark; --page: #f4f6f8; --card: #fff; --text: #1c2733; --quiet: #51606e; --line: #d3dbe2;
    --accent: #1a5fd0; --accent-text: #fff; --danger: #b42318; }
  @media (prefers-color-scheme: dark) {
    :root { --page: #12181f; --card: #1b232c; --text: #e6ebf0; --quiet: #a3b0bd; --line: #35414d;
      --accent: #79adff; --accent-text: #0c1a2e; --danger: #ff9a8f; }
  }
  * { box-sizing: border-box; }
  body { font: 16px/1.5 system-ui, sans-serif; background: var(--page); color: var(--text); margin: 0; }
  a { color: var(--accent); }
  h1 { font-size: 1.25rem; margin: 0; }
  input, button { padding: .55rem .75rem; font: inherit; color: inherit; background: var(--card);
    border: 1px solid var(--quiet); border-radius: .4rem; }
  button { background: var(--accent); border-color: var(--accent); color: var(--accent-text); cursor: pointer; }
  :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
  [role=alert] { color: var(--danger); }`;

const DOOR_STYLE = `
  body { display: grid; place-items: center; min-height: 100vh; }
  main { background: var(--card); padding: 2rem; border-radius: .75rem; box-shadow: 0 1px 8px #0002;
    width: min(20rem, calc(100vw - 2rem)); }
  h1 { margin-bottom: 1rem; }
  label { display: block; margin: .75rem 0 .25rem; font-size: .875rem; }
  input, button { width: 100%; }
  button { margin-top: 1.25rem; }`;

/** A whole page. @param style beyond what all pages have. */
export function page(title: string, style: string, body: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="icon" href="${ICON_PATH}">
<style>${new Html(STYLE + style)}</style>
</head>
<body>${body}</body>
</html>`.text;
}

function door(content: Html): string {
  return page('Millrace', DOOR_STYLE, html`<main><h1>Millrace dashboard</h1>${content}</main>`);
}

export function loginPage(message?: string): string {
  return door(html`${message !== undefined && html`<p role="alert">${message}</p>`}
<form method="post" action="${DASHBOARD_PATH}/login">
<label for="user">User</label>
<input id="user" name="user" value="admin" autocomplete="username" required>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required autofocus>
<button>Log in</button>
</form>`);
}

export function disabledPage(): string {
  return door(
    html`<p>The dashboard is off: there is no password, and no API key of the scope admin. Set MILLRACE_DASHBOARD_PASSWORD and start again.</p>`,
  );
}
