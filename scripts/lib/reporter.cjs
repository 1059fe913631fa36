// mocha's own "spec" output, and beside it the counts in a file, kept up to date after every test, so that
// they are there even when the process that ran the tests crashes.
const { writeFileSync } = require('node:fs');
const { Runner, reporters } = require('mocha');

/** What is still open this long after the last test was leaked by one. */
const LEAK_AFTER_MS = 10_000;

class CountingSpec extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const counts = { passed: 0, failed: 0, skipped: 0, running: '', ended: false };
    const keep = () => writeFileSync(process.env.MILLRACE_TEST_COUNTS, JSON.stringify(counts));
    const events = Runner.constants;
    runner.on(events.EVENT_TEST_BEGIN, (test) => {
      counts.running = test.fullTitle();
      keep();
    });
    runner.on(events.EVENT_TEST_PASS, () => count('passed'));
    runner.on(events.EVENT_TEST_FAIL, () => count('failed'));
    runner.on(events.EVENT_TEST_PENDING, () => count('skipped'));
    runner.on(events.EVENT_RUN_END, () => {
      counts.ended = true;
      counts.running = '';
      keep();
      endIfLeaking();
    });
    keep();

    function count(outcome) {
      counts[outcome] += 1;
      keep();
    }
  }
}

function endIfLeaking() {
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().filter((name) => name !== 'TTYWrap');
    console.error(`The tests are over, but something they opened is not closed: ${open.join(', ')}`);
    // Not exit(): a thread in the middle of a run would turn that into an abort.
    process.kill(process.pid, 'SIGKILL');
  }, LEAK_AFTER_MS).unref();
}

module.exports = CountingSpec;
