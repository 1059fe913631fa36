import type { Settings } from '@millrace/shared';
import { Command } from 'commander';
import { runGateway } from './commands/gateway.js';
import { makeKey } from './commands/keys.js';
import { listModelsCommand, prepareModels } from './commands/models.js';
import { runWorker } from './commands/worker.js';
import type { Host } from './host.js';
import { addSettingFlags, settingsFrom } from './setting-flags.js';
import { up } from './up/up.js';

const SETTINGS_NOTE = '\nEvery setting is a flag or an environment variable (in brackets); a flag wins.';

/** What a command comes to: the process's exit code. */
type Action = (settings: Settings, host: Host, argument: string | undefined) => Promise<number>;

/** The whole command line. `exitWith` receives the exit code of the command that ran. */
export function buildProgram(host: Host, exitWith: (code: number) => void): Command {
  const program = new Command('millrace')
    .description('Serves ONNX models over HTTP from a durable queue.')
    .helpCommand(false)
    .version(host.version);

  const add = (
    parent: Command,
    usage: string,
    audience: 'all' | 'gateway' | 'worker' | 'up',
    act: Action,
  ) => {
    const command = parent.command(usage).version(host.version).addHelpText('after', SETTINGS_NOTE);
    addSettingFlags(command, audience).action(async (...given: unknown[]) => {
      const [argument] = given;
      const named = typeof argument === 'string' ? argument : undefined;
      exitWith(await act(settingsFrom(command, host.env), host, named));
    });
    return command;
  };

  add(program, 'up', 'up', up).description(
    'Serve on this machine: a private Redis (or REDIS_URL), a gateway and workers, until Ctrl-C.',
  );
  add(program, 'gateway', 'gateway', runGateway).description(
    'Run one gateway on REDIS_URL. Any number may run, on any number of machines.',
  );
  add(program, 'worker', 'worker', runWorker).description(
    'Run one worker on REDIS_URL. Any number may run, on any number of machines.',
  );

  const models = program
    .command('models')
    .description('See the models there are, or make them ready ahead of a start.')
    .helpCommand(false)
    .version(host.version);
  add(models, 'list', 'all', listModelsCommand).description('List the models in the models folder.');
  add(models, 'prepare [NAME]', 'all', prepareModels).description(
    'Fetch, check and build a model, or all that would be served.',
  );

  program
    .command('keys <NAME>')
    .description('Make an API key: prints it once, and its entry for MILLRACE_API_KEYS.')
    .version(host.version)
    .action(async (name: string) => exitWith(await makeKey(name, host)));
  return program;
}
