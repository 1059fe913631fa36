import { access } from 'node:fs/promises';
import { type Browser, chromium } from 'playwright-core';
import { installByApt, isDebianAsRoot } from '#cli/system/apt.js';
import { firstOnPath } from '#cli/system/on-path.js';

/** Chromium and its kin: by the name of a command, or where macOS keeps programs. */
const COMMANDS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const APPLICATIONS = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];
const INSTALL_TIMEOUT_MS = 10 * 60_000;
const LAUNCH_TIMEOUT_MS = 60_000;

/**
 * Starts a real browser without a window; the caller closes it. Called in a `before` hook, whose time limit is
 * raised: on Debian, as root, a missing Chromium is installed first, about 300 MB.
 * @throws Error with what to type where there is none and it can't be installed.
 */
export async function launchBrowser(hook: Mocha.Context): Promise<Browser> {
  hook.timeout(INSTALL_TIMEOUT_MS);
  const executablePath = await findBrowser();
  return await chromium.launch({ executablePath, timeout: LAUNCH_TIMEOUT_MS });
}

async function findBrowser(): Promise<string> {
  const there = await firstThere();
  if (there) return there;
  if (await isDebianAsRoot()) {
    console.log('No Chromium is installed: installing Debian’s package (once)...');
    await installByApt('chromium');
    const installed = await firstThere();
    if (installed) return installed;
  }
  throw new Error(
    'This test needs Chromium or Google Chrome, and there is none. Install one (on Debian: `sudo apt-get install -y chromium`, on macOS: `brew install --cask google-chrome`), then run the tests again.',
  );
}

async function firstThere(): Promise<string | undefined> {
  const command = await firstOnPath(COMMANDS);
  if (command) return command;
  for (const path of APPLICATIONS) {
    const exists = await access(path).then(
      () => true,
      () => false,
    );
    if (exists) return path;
  }
  return undefined;
}
