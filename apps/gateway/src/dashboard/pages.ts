/** Where the dashboard is mounted; bull-board builds its links from it. */
export const DASHBOARD_PATH = '/dashboard';

const STYLE = `
  body { font: 16px/1.5 system-ui, sans-serif; background: #f4f6f8; color: #1c2733; display: grid;
    place-items: center; min-height: 100vh; margin: 0; }
  main { background: #fff; padding: 2rem; border-radius: .75rem; box-shadow: 0 1px 8px #0002; width: 20rem; }
  h1 { font-size: 1.25rem; margin: 0 0 1rem; }
  label { display: block; margin: .75rem 0 .25rem; font-size: .875rem; }
  input, button { width: 100%; box-sizing: border-box; padding: .6rem; font: inherit; border-radius: .4rem;
    border: 1px solid #b8c2cc; }
  button { margin-top: 1.25rem; background: #1f6feb; border-color: #1f6feb; color: #fff; cursor: pointer; }
  :focus-visible { outline: 3px solid #1f6feb66; }
  [role=alert] { color: #b42318; }`;

function page(content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Millrace</title>
<style>${STYLE}</style>
</head>
<body><main><h1>Millrace dashboard</h1>${content}</main></body>
</html>`;
}

/** @param message plain text of ours, never of a client's. */
export function loginPage(message?: string): string {
  return page(`${message ? `<p role="alert">${message}</p>` : ''}
<form method="post" action="${DASHBOARD_PATH}/login">
<label for="user">User</label>
<input id="user" name="user" value="admin" autocomplete="username" required>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required autofocus>
<button>Log in</button>
</form>`);
}

export function disabledPage(): string {
  return page(
    '<p>The dashboard is off: there is no password, and no API key of the scope admin. Set MILLRACE_DASHBOARD_PASSWORD and start again.</p>',
  );
}
